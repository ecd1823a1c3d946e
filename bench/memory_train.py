"""Trains yolov3-tiny on pictures in less and less memory, in turns: speed and peak memory."""

import argparse
import pathlib
import statistics
import sys
import tempfile

import harness
import train_bccd
from harness import MIB, BenchError


def parse_arguments():
    parser = argparse.ArgumentParser(prog="memory_train.py", description=__doc__)
    harness.add_common_arguments(parser, rounds=2)
    parser.add_argument("--batch", type=harness.positive, default=8)
    parser.add_argument("--iterations", type=harness.positive, default=8)
    parser.add_argument(
        "--memory",
        default="400M,340M",
        help="sizes as of -memory, by commas; the run without any comes first",
    )
    return parser.parse_args()


def run(arguments, cfg, memory):
    with tempfile.TemporaryDirectory(prefix="bench-memory-") as name:
        folder = pathlib.Path(name)
        harness.make_run_folder(folder, arguments.data, cfg)
        command = [arguments.lantern.resolve(), "detector", "train", "obj.data", "net.cfg"]
        command += ["-dont_show", "--threads", arguments.threads, "--log", "metrics.jsonl"]
        if memory:
            command += ["-memory", memory]
        figures = harness.run_process(command, folder, arguments.threads)
        iterations = train_bccd.read_metrics(folder / "metrics.jsonl")
        counted = harness.without_first([i["seconds"] for i in iterations])
        seconds = statistics.median(counted)
        return {
            "images_per_second": arguments.batch / seconds,
            "seconds": seconds,
            "peak": figures["peak_rss_bytes"],
        }


def main():
    arguments = parse_arguments()
    harness.require_program(arguments.lantern, "build it, or name it with --lantern")
    if not arguments.data.is_file():
        raise BenchError(f"{arguments.data} is not a file")
    cfg = train_bccd.adapted_cfg(arguments)
    sizes = [""] + [size for size in arguments.memory.split(",") if size]
    programs = {
        size or "no limit": lambda size=size: run(arguments, cfg, size) for size in sizes
    }
    harness.load_average_note()
    results = harness.in_turns(programs, arguments.rounds, not arguments.no_warm_up)
    rows = []
    for name, rounds in results.items():
        slower = [
            100 * (a["seconds"] / b["seconds"] - 1) for a, b in zip(rounds, results["no limit"])
        ]
        rows.append(
            [
                name,
                harness.spread([r["seconds"] for r in rounds], 3),
                harness.spread(slower, 1) + " %",
                f"{max(r['peak'] for r in rounds) / MIB:.0f} MiB",
            ]
        )
    header = ["memory", "s/iteration", "slower", "peak of the process"]
    print(harness.table(header, rows, arguments.markdown))
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    harness.main_with_errors(main)
