"""Trains yolov3-tiny with Lantern, PyTorch and Debian's darknet in turns."""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import harness
from harness import MIB, BenchError

TORCH = pathlib.Path(__file__).resolve().parent / "torch_yolov3_tiny.py"


def parse_arguments():
    parser = argparse.ArgumentParser(prog="compare.sh", description=__doc__)
    harness.add_common_arguments(parser, rounds=5)
    parser.add_argument("--cfg", type=pathlib.Path, default=harness.STOCK_CFG, metavar="FILE")
    parser.add_argument("--mini-batch", type=harness.positive, default=8)
    parser.add_argument(
        "--iterations", type=harness.positive, default=20, help="of Lantern and PyTorch in a turn"
    )
    parser.add_argument("--darknet-iterations", type=harness.positive, default=4)
    parser.add_argument(
        "--layout", choices=("channels_last", "nchw"), default="channels_last", help="of PyTorch"
    )
    parser.add_argument(
        "--only", default="lantern,torch,darknet", metavar="NAMES", help="of: %(default)s"
    )
    return parser.parse_args()


def last_json(stdout, program):
    """The JSON object at the end of the output; Lantern prints it over one or many lines."""
    try:
        return json.loads(stdout[stdout.index("{") :])
    except ValueError as error:
        raise BenchError(f"{program} printed no JSON object: {error}") from None


def finish(result, figures, mini_batch):
    """Images per second of the middle iteration, the first left out."""
    result["images_per_second"] = mini_batch / statistics.median(
        harness.without_first(result["seconds"])
    )
    for key in ("wall_seconds", "cpu_seconds", "peak_rss_bytes"):
        result[key] = figures[key]
    return result


def run_lantern(arguments):
    figures = harness.run_process(
        [
            arguments.lantern.resolve(),
            "bench",
            arguments.cfg.resolve(),
            "--train",
            "--mini-batch",
            arguments.mini_batch,
            "--iterations",
            arguments.iterations,
            "--threads",
            arguments.threads,
            "--json",
        ],
        "/",
        arguments.threads,
    )
    report = last_json(figures["stdout"], "lantern bench")
    if not report.get("seconds"):
        raise BenchError("lantern bench reports no seconds")
    result = {"seconds": report["seconds"], "planned_bytes": report.get("planned_bytes")}
    return finish(result, figures, arguments.mini_batch)


def run_torch(arguments):
    figures = harness.run_process(
        [
            sys.executable,
            TORCH,
            arguments.cfg.resolve(),
            "--mini-batch",
            arguments.mini_batch,
            "--iterations",
            arguments.iterations,
            "--threads",
            arguments.threads,
            "--layout",
            arguments.layout,
        ],
        "/",
        arguments.threads,
    )
    report = last_json(figures["stdout"], "torch_yolov3_tiny.py")
    return finish(
        {"seconds": report["seconds"], "version": report["version"]}, figures, arguments.mini_batch
    )


def run_darknet(arguments):
    text = harness.edit_cfg(
        arguments.cfg.read_text(),
        {
            "batch": arguments.mini_batch,
            "subdivisions": 1,
            "max_batches": arguments.darknet_iterations,
        },
        {"random": 0},
    )
    iterations, figures = harness.train_with_darknet(
        arguments.darknet, arguments.data, text, arguments.threads
    )
    return finish({"seconds": [i["seconds"] for i in iterations]}, figures, arguments.mini_batch)


def usable_programs(arguments):
    """{name: function}, Lantern first; programs that are not there are named and left out."""
    wanted = arguments.only.split(",")
    unknown = set(wanted) - {"lantern", "torch", "darknet"}
    if unknown:
        raise BenchError(
            f"--only names {', '.join(sorted(unknown))}; known are lantern, torch, darknet"
        )
    programs = {}
    if "lantern" in wanted:
        harness.require_program(
            arguments.lantern,
            "build it with 'cmake --preset release && cmake --build --preset "
            "release', or name it with --lantern",
        )
        programs["lantern"] = lambda: run_lantern(arguments)
    if "torch" in wanted:
        if (
            subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode
            == 0
        ):
            programs["torch"] = lambda: run_torch(arguments)
        else:
            print(f"note: {sys.executable} has no torch: left out", file=sys.stderr)
    if "darknet" in wanted:
        if shutil.which(arguments.darknet):
            programs["darknet"] = lambda: run_darknet(arguments)
        else:
            print(f"note: {arguments.darknet} is not there: left out", file=sys.stderr)
    if not programs:
        raise BenchError("none of the programs can be run")
    return programs


def ratios(results, name):
    """Images per second of Lantern over those of another program, round by round."""
    return [
        a["images_per_second"] / b["images_per_second"]
        for a, b in zip(results["lantern"], results[name])
    ]


def rows_of(results, arguments):
    labels = {
        "lantern": "Lantern",
        "torch": f"PyTorch ({arguments.layout})",
        "darknet": "darknet (Debian)",
    }
    rows = []
    for name, rounds in results.items():
        label = labels[name]
        if "version" in rounds[0]:
            label = label.replace("PyTorch", f"PyTorch {rounds[0]['version']}")
        speeds = [r["images_per_second"] for r in rounds]
        milliseconds = 1e3 * arguments.mini_batch / statistics.median(speeds)
        memory = statistics.median(r["peak_rss_bytes"] for r in rounds)
        busy = statistics.median(r["cpu_seconds"] / r["wall_seconds"] for r in rounds)
        compared = (
            ""
            if name == "lantern" or "lantern" not in results
            else harness.spread(ratios(results, name))
        )
        rows.append(
            [
                label,
                harness.spread(speeds),
                f"{milliseconds:.0f}",
                compared,
                f"{memory / MIB:.0f}",
                f"{busy:.2f}",
            ]
        )
    return rows


def main():
    arguments = parse_arguments()
    for path in (arguments.cfg, arguments.data):
        if not path.is_file():
            raise BenchError(f"{path} is not a file")
    programs = usable_programs(arguments)
    harness.load_average_note()
    results = harness.in_turns(programs, arguments.rounds, not arguments.no_warm_up)
    if arguments.json:
        report = {
            "cfg": str(arguments.cfg),
            "mini_batch": arguments.mini_batch,
            "threads": arguments.threads,
            "processor": harness.processor_name(),
            "processors": os.cpu_count(),
            "rounds": results,
        }
        if "lantern" in results:
            report["ratios"] = {
                name: ratios(results, name) for name in results if name != "lantern"
            }
        print(json.dumps(report, indent=1))
        return 0
    header = [
        "program",
        "images/s: median (range)",
        "ms/iteration",
        "speed-up of Lantern",
        "peak memory MiB",
        "processors busy",
    ]
    print(
        f"{arguments.cfg.name}, mini-batch {arguments.mini_batch}, threads {arguments.threads}, "
        f"rounds {arguments.rounds}, {harness.processor_name()}\n"
    )
    print(harness.table(header, rows_of(results, arguments), arguments.markdown))
    planned = results.get("lantern", [{}])[0].get("planned_bytes")
    if planned:
        print(f"\nLantern planned {planned / MIB:.0f} MiB before it started.")
    return 0


if __name__ == "__main__":
    harness.main_with_errors(main)
