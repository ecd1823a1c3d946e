"""ONNX files of `lantern export onnx`, read by OpenCV's dnn, against our own engine and against OpenCV reading the cfg
and weights itself: onnx_test.py PROGRAM LIBRARY WEIGHTS_FOLDER.  Exit code 77: no OpenCV for this Python."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import cv2
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}; Debian's python3-opencv has both")
    sys.exit(77)

try:
    import onnx
    import onnx.numpy_helper
except ImportError:
    onnx = None

import nets
from engine import PROGRAM, Net, close_to

WEIGHTS = sys.argv[3]


def for_opencv(path):
    """OpenCV 4.6 knows Clip and ReduceSum as opset 10 wrote them, bounds and axes as attributes, whatever the file
    says: rewrites those two. The rest of the file stays."""
    model = onnx.load(path)
    values = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Clip":
            low, high = (float(values[name]) for name in node.input[1:])
            node.attribute.extend([onnx.helper.make_attribute("min", low), onnx.helper.make_attribute("max", high)])
            del node.input[1:]
        if node.op_type == "ReduceSum":
            node.attribute.append(onnx.helper.make_attribute("axes", values[node.input[1]].tolist()))
            del node.input[1:]
    onnx.save(model, path)


def run_onnx(path, blob, outputs):
    if onnx is not None:
        for_opencv(path)
    reader = cv2.dnn.readNetFromONNX(path)
    reader.setInput(blob)
    return reader.forward(outputs)


def sorted_rows(boxes, scores):
    """The two engines list boxes in different orders: by all of their values, rounded as far as order matters."""
    rows = np.concatenate([boxes, scores], axis=1)
    return rows[np.lexsort(np.round(rows.T[::-1], 3))]


class OnnxTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="lantern_onnx_")
        self.rng = np.random.default_rng(3)

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, text):
        cfg, weights = self.path("net.cfg"), self.path("net.weights")
        with open(cfg, "w") as file:
            file.write(text)
        nets.write_weights(PROGRAM, cfg, weights, self.rng)
        return cfg, weights

    def export(self, cfg, weights, *flags):
        out = self.path("net.onnx")
        subprocess.run([PROGRAM, "export", "onnx", cfg, weights, "-o", out, *flags], check=True, capture_output=True)
        return out

    def blob(self, shape, batch=1):
        return self.rng.uniform(0, 1, (batch,) + shape).astype(np.float32)

    def darknet(self, cfg, weights, blob, outputs=None):
        adjusted = self.path("opencv.weights")
        nets.with_epsilon_of_opencv(PROGRAM, cfg, weights, adjusted)
        reader = cv2.dnn.readNetFromDarknet(cfg, adjusted)
        reader.setInput(blob)
        return reader.forward(outputs) if outputs else reader.forward()

    def assert_close(self, actual, expected, what):
        close_to(self, actual, expected, what)

    def test_every_layer_kind(self):
        for name, (text, opencv_reads_it) in nets.PLAIN.items():
            with self.subTest(name):
                if name in nets.NEEDS_REWRITING and onnx is None:
                    self.skipTest("OpenCV 4.6 cannot read Clip and ReduceSum of opset 13; Debian's python3-onnx helps")
                cfg, weights = self.write(text)
                ours = Net(cfg, weights)
                blob = self.blob(ours.shape)
                want = ours.predict(blob)
                ours.close()
                for flags in ((), ("--fold-bn",)):
                    found = run_onnx(self.export(cfg, weights, *flags), blob, ["output"])[0]
                    self.assert_close(found, want, f"{name} {flags}")
                if opencv_reads_it:
                    self.assert_close(found, self.darknet(cfg, weights, blob), f"{name}: OpenCV's own reader")

    def test_batches(self):
        for name in ("classifier", "connected", "reorg", "weighted_per_channel"):
            with self.subTest(name):
                cfg, weights = self.write(nets.PLAIN[name][0])
                ours = Net(cfg, weights, 2)
                blob = self.blob(ours.shape, 2)
                found = run_onnx(self.export(cfg, weights, "--batch", "2"), blob, ["output"])[0]
                self.assertEqual(found.shape[0], 2)
                self.assert_close(found, ours.predict(blob), name)
                ours.close()

    def check_detector(self, cfg, weights, opencv_reads_it, blob=None):
        ours = Net(cfg, weights)
        blob = self.blob(ours.shape) if blob is None else blob
        ours.predict(blob)
        boxes, scores = ours.all_boxes()
        ours.close()
        for flags in ((), ("--fold-bn",)):
            found = run_onnx(self.export(cfg, weights, "--heads", "decoded", *flags), blob, ["boxes", "scores"])
            found = [f.reshape(boxes.shape[0], -1) for f in found]
            for side in (found[0], boxes):
                self.assertLess(np.abs(side).max(), 1e4)
            self.assert_close(sorted_rows(*found), sorted_rows(boxes, scores), "decoded")
        layers = nets.layers_of(PROGRAM, cfg)
        heads = [i for i, (kind, _, _) in enumerate(layers) if kind in ("yolo", "Gaussian_yolo", "region")]
        names = [f"head{k}" for k in range(len(heads))]
        raw = run_onnx(self.export(cfg, weights), blob, names)
        if opencv_reads_it:
            # OpenCV numbers a convolution as the cfg does, and its activation one higher.
            linear = layers[heads[0] - 1][1]["activation"] == "linear"
            feeding = [f"conv_{i - 1}" if linear else f"logistic_{i}" for i in heads]
            for found, want in zip(raw, self.darknet(cfg, weights, blob, feeding)):
                self.assert_close(found, want, "raw heads")

    def test_detection_layers(self):
        for name, (text, opencv_reads_it) in nets.DETECTORS.items():
            with self.subTest(name):
                self.check_detector(*self.write(text), opencv_reads_it)

    def test_published_networks(self):
        for name, picture in (("yoloface-50k", "dog_56x56.png"),
                              ("yolo-fastest-1.1_IR_small_1chan_v1", "dog_gray_40x40.png")):
            with self.subTest(name):
                stem = os.path.join(WEIGHTS, name, name)
                flag = cv2.IMREAD_GRAYSCALE if "gray" in picture else cv2.IMREAD_COLOR
                image = cv2.imread(os.path.join(WEIGHTS, "expected", "inputs", picture), flag)
                blob = cv2.dnn.blobFromImage(image, 1 / 255, swapRB=image.ndim == 3)
                self.check_detector(stem + ".cfg", stem + ".weights", True, blob)

    def test_onnxruntime_agrees(self):
        if not (os.environ.get("ONNXRUNTIME_WEB") and shutil.which("node")):
            self.skipTest("set ONNXRUNTIME_WEB to node_modules/onnxruntime-web (npm install onnxruntime-web), with node")
        jobs, expected = [], []
        for name, (text, _) in {**nets.PLAIN, **nets.DETECTORS}.items():
            cfg, weights = self.write(text)
            ours = Net(cfg, weights)
            blob = self.blob(ours.shape)
            want = {"output": ours.predict(blob)}
            if name in nets.DETECTORS:
                want = dict(zip(("boxes", "scores"), ours.all_boxes()))
            ours.close()
            job = {"model": self.path(name + ".onnx"), "input": self.path(name + ".f32"), "shape": blob.shape,
                   "outputs": {o: self.path(f"{name}_{o}") for o in want}}
            os.rename(self.export(cfg, weights, "--heads", "decoded"), job["model"])
            blob.tofile(job["input"])
            jobs.append(job)
            expected.append((name, want))
        with open(self.path("jobs.json"), "w") as file:
            json.dump(jobs, file)
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run_ort.mjs")
        subprocess.run(["node", script, self.path("jobs.json")], check=True, capture_output=True)
        for job, (name, want) in zip(jobs, expected):
            with self.subTest(name):
                found = {o: np.fromfile(path, np.float32).reshape(np.shape(want[o])) for o, path in job["outputs"].items()}
                if "boxes" in want:
                    self.assert_close(sorted_rows(found["boxes"], found["scores"]),
                                      sorted_rows(want["boxes"], want["scores"]), name)
                else:
                    self.assert_close(found["output"], want["output"], name)

    def test_refusals_name_the_layer(self):
        with open(self.path("nodes.tree"), "w") as file:
            file.write(nets.TREE)
        for name, (text, word, *flags) in nets.REFUSED.items():
            with self.subTest(name):
                cfg, weights = self.write(text)
                done = subprocess.run([PROGRAM, "export", "onnx", cfg, weights, "-o", self.path("x.onnx"), *flags],
                                      capture_output=True, text=True, cwd=self.folder.name)
                self.assertEqual(done.returncode, 3)
                self.assertIn(word, done.stderr)
                self.assertIn("net.cfg:", done.stderr)
                self.assertFalse(os.path.exists(self.path("x.onnx")))

    def test_names_must_be_as_many_as_classes(self):
        names = self.path("two.names")
        with open(names, "w") as file:
            file.write("cat\ndog\n")
        for text in (nets.PLAIN["classifier"][0], nets.DETECTORS["region"][0]):
            cfg, weights = self.write(text)
            done = subprocess.run([PROGRAM, "export", "onnx", cfg, weights, "-o", self.path("x.onnx"), "--names", names],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 3)
            self.assertIn("there are 2", done.stderr)

    def test_shared_weights_are_written_once(self):
        with open(self.export(*self.write(nets.PLAIN["shared_weights"][0])), "rb") as file:
            model = file.read()
        for name in (b"L1.weights", b"L3.biases"):
            self.assertEqual(model.count(b"\x42" + bytes([len(name)]) + name), 1, name)  # TensorProto.name

    def test_metadata_and_structure(self):
        if onnx is None:
            self.skipTest("no onnx package for this Python; Debian's python3-onnx is one")
        for name, (text, _) in {**nets.PLAIN, **nets.DETECTORS}.items():
            for flags in (("--heads", "raw"), ("--heads", "decoded", "--fold-bn")):
                cfg, weights = self.write(text)
                model = onnx.load(self.export(cfg, weights, *flags))
                onnx.checker.check_model(model, full_check=True)
                self.assertEqual(model.opset_import[0].version, 13)
                self.assertEqual("BatchNormalization" in [n.op_type for n in model.graph.node],
                                 name == "batchnorm" or ("batch_normalize=1" in text and "--fold-bn" not in flags) or
                                 (name == "connected"), name)
        # OpenCV leaves the padding out of a mean whatever the file says.
        model = onnx.load(self.export(*self.write(nets.PLAIN["local_avgpool"][0])))
        pool = next(n for n in model.graph.node if n.op_type == "AveragePool")
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in pool.attribute}
        self.assertEqual((attributes["count_include_pad"], max(attributes["pads"])), (0, 1))
        names = self.path("two.names")
        with open(names, "w") as file:
            file.write("cat\nBär\n")
        cfg, weights = self.write(nets.DETECTORS["yolo"][0])
        model = onnx.load(self.export(cfg, weights, "--names", names))
        metadata = {p.key: p.value for p in model.metadata_props}
        self.assertEqual(metadata["names"], "cat\nBär")
        self.assertEqual((metadata["width"], metadata["height"], metadata["classes"]), ("32", "24", "2"))
        self.assertIn("anchors=14,13,17,15,20,17", metadata["head0"])
        self.assertIn("kind=yolo", metadata["head1"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
