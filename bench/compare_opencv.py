"""Infers networks with Lantern and OpenCV's dnn module in turns, with the same random weights."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import harness
from harness import MIB, BenchError

OPENCV = pathlib.Path(__file__).resolve().parent / "opencv_infer.py"
WEIGHTS = harness.REPOSITORY / "build/release/bench/bench_initial_weights"
# Dense networks should be 2.5 times as fast, those of grouped convolutions twice.
NETS = (
    "yolov3-tiny",
    "yolov4-tiny",
    "yolov7-tiny",
    "enet-coco",
    "csresnext50-panet-spp",
    "yolov3-spp",
    "yolov4",
)


def parse_arguments():
    parser = argparse.ArgumentParser(prog="compare_opencv.sh", description=__doc__)
    parser.add_argument("cfgs", type=pathlib.Path, metavar="FOLDER", help="with NAME.cfg for each")
    parser.add_argument(
        "--nets", default=",".join(NETS), metavar="NAMES", help="default %(default)s"
    )
    parser.add_argument("--rounds", type=harness.positive, default=5, help="turns (default 5)")
    parser.add_argument(
        "--iterations",
        type=harness.positive,
        default=5,
        help="passes of a turn, after two to warm up",
    )
    parser.add_argument("--size", type=harness.positive, default=416)
    parser.add_argument("--threads", type=harness.positive, default=2)
    parser.add_argument("--lantern", type=pathlib.Path, default=harness.LANTERN, metavar="PROGRAM")
    parser.add_argument("--initial-weights", type=pathlib.Path, default=WEIGHTS, metavar="PROGRAM")
    parser.add_argument("--no-install", action="store_true", help="do not install python3-opencv")
    parser.add_argument("--json", action="store_true", help="everything that was measured")
    parser.add_argument("--markdown", action="store_true", help="the tables as Markdown")
    return parser.parse_args()


def report_of(argv, arguments):
    """The JSON object that a program prints, with the peak memory of its process."""
    figures = harness.run_process(argv, "/", arguments.threads)
    try:
        report = json.loads(figures["stdout"][figures["stdout"].index("{") :])
    except ValueError as error:
        raise BenchError(f"{argv[0]} printed no JSON object: {error}") from None
    report["peak_rss_bytes"] = figures["peak_rss_bytes"]
    return report


def common_flags(arguments):
    return ["--threads", arguments.threads, "--iterations", arguments.iterations]


def run_lantern(cfg, weights, arguments):
    flags = common_flags(arguments) + ["--json"]
    return report_of([arguments.lantern.resolve(), "bench", cfg, weights] + flags, arguments)


def run_opencv(cfg, weights, arguments):
    flags = common_flags(arguments) + ["--size", arguments.size]
    return report_of([sys.executable, OPENCV, cfg, weights] + flags, arguments)


def prepare(name, folder, arguments):
    """The cfg at the size asked for and random weights, which both programs read."""
    source = arguments.cfgs / f"{name}.cfg"
    if not source.is_file():
        raise BenchError(f"{source} is not a file")
    net = {"width": arguments.size, "height": arguments.size, "batch": 1, "subdivisions": 1}
    cfg, weights = folder / f"{name}.cfg", folder / f"{name}.weights"
    cfg.write_text(harness.edit_cfg(source.read_text(), net, {}))
    harness.run_process([arguments.initial_weights.resolve(), cfg, weights], "/", arguments.threads)
    return cfg, weights


def milliseconds(turns):
    """The median pass of every turn."""
    return [1e3 * statistics.median(turn["seconds"]) for turn in turns]


def megabytes(turns):
    return statistics.median(turn["peak_rss_bytes"] for turn in turns) / MIB


def row_of(name, turns):
    lantern, opencv = milliseconds(turns["lantern"]), milliseconds(turns["opencv"])
    return [
        name,
        harness.spread(lantern, 1),
        harness.spread(opencv, 1),
        harness.spread([b / a for a, b in zip(lantern, opencv)]),
        f"{megabytes(turns['lantern']):.0f}",
        f"{megabytes(turns['opencv']):.0f}",
    ]


def shares(turns, key, count):
    """The largest groups of the layers' rows by share of the time, the median over the turns."""
    sums = {}
    for i, turn in enumerate(turns):
        for layer in turn["layers"]:
            sums.setdefault(key(layer), [0.0] * len(turns))[i] += layer["share"]
    medians = {name: statistics.median(values) for name, values in sums.items()}
    largest = sorted(medians.items(), key=lambda item: -item[1])[:count]
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in largest)


def limits_of(name, turns):
    kernels = shares(turns["lantern"], lambda layer: f"{layer['op']} [{layer['kernel']}]", 4)
    layers = shares(turns["lantern"], lambda layer: f"{layer['layer']} {layer['section']}", 5)
    return [name, kernels, layers]


def main():
    arguments = parse_arguments()
    for program in (arguments.lantern, arguments.initial_weights):
        harness.require_program(
            program, "build it with 'cmake --preset release && cmake --build --preset release'"
        )
    if subprocess.run([sys.executable, "-c", "import cv2"], capture_output=True).returncode != 0:
        raise BenchError(f"{sys.executable} has no cv2: install python3-opencv")
    harness.load_average_note()
    names = arguments.nets.split(",")
    turns = {name: {"lantern": [], "opencv": []} for name in names}
    with tempfile.TemporaryDirectory(prefix="bench-opencv-") as folder:
        files = {name: prepare(name, pathlib.Path(folder), arguments) for name in names}
        for turn in range(arguments.rounds):
            for name, (cfg, weights) in files.items():
                turns[name]["lantern"].append(run_lantern(cfg, weights, arguments))
                turns[name]["opencv"].append(run_opencv(cfg, weights, arguments))
                last = {k: milliseconds(v[-1:])[0] for k, v in turns[name].items()}
                print(
                    f"round {turn + 1}: {name}: Lantern {last['lantern']:.1f} ms, "
                    f"OpenCV {last['opencv']:.1f} ms",
                    file=sys.stderr,
                )
    for name in names:
        if not all(turn["finite"] for turn in turns[name]["opencv"]):
            print(f"note: {name}: OpenCV's outputs are not all finite", file=sys.stderr)
    version = turns[names[0]]["opencv"][0]["version"]
    if arguments.json:
        report = {
            "size": arguments.size,
            "threads": arguments.threads,
            "processor": harness.processor_name(),
            "processors": os.cpu_count(),
            "opencv": version,
            "networks": turns,
        }
        print(json.dumps(report, indent=1))
        return 0
    print(
        f"{arguments.size} x {arguments.size}, batch 1, fp32, threads {arguments.threads}, "
        f"rounds {arguments.rounds}, OpenCV {version}, {harness.processor_name()}\n"
    )
    header = [
        "network",
        "Lantern ms: median (range)",
        "OpenCV ms: median (range)",
        "times as fast",
        "Lantern peak MiB",
        "OpenCV peak MiB",
    ]
    print(harness.table(header, [row_of(n, turns[n]) for n in names], arguments.markdown))
    print()
    header = ["network", "share of Lantern's time by kernel", "slowest layers"]
    print(harness.table(header, [limits_of(n, turns[n]) for n in names], arguments.markdown))
    return 0


if __name__ == "__main__":
    harness.main_with_errors(main)
