// node run_ort.mjs JOBS.json: runs ONNX files with onnxruntime-web (npm), as they are. A job is
// {"model", "input" (raw f32), "shape", "outputs": {name: file}}. ONNXRUNTIME_WEB is the package's folder.
import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';

const ort = await import(pathToFileURL(join(process.env.ONNXRUNTIME_WEB, 'dist', 'ort.min.mjs')));
ort.env.wasm.numThreads = 1;
for (const job of JSON.parse(readFileSync(process.argv[2]))) {
  const session = await ort.InferenceSession.create(readFileSync(job.model));
  const bytes = readFileSync(job.input);
  const values = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  const found = await session.run({ images: new ort.Tensor('float32', values, job.shape) });
  for (const [name, file] of Object.entries(job.outputs)) {
    writeFileSync(file, Buffer.from(found[name].data.buffer, found[name].data.byteOffset, found[name].data.byteLength));
  }
}
