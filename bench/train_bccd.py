"""Trains yolov3-tiny on pictures with Lantern and Debian's darknet in turns."""

import argparse
import json
import pathlib
import shutil
import statistics
import tempfile

import harness
from harness import MIB, BenchError


def parse_arguments():
    parser = argparse.ArgumentParser(prog="train_bccd.sh", description=__doc__)
    harness.add_common_arguments(parser, rounds=3)
    parser.add_argument("--batch", type=harness.positive, default=8)
    parser.add_argument("--iterations", type=harness.positive, default=30)
    parser.add_argument(
        "--loader-threads",
        type=harness.positive,
        metavar="N",
        help="of Lantern; its default otherwise",
    )
    parser.add_argument("--no-darknet", action="store_true", help="Lantern alone")
    return parser.parse_args()


def adapted_cfg(arguments):
    """The stock cfg for three classes, at one size: every iteration is the same work."""
    return harness.edit_cfg(
        harness.STOCK_CFG.read_text(),
        {"batch": arguments.batch, "subdivisions": 1, "max_batches": arguments.iterations},
        {"classes": 3, "random": 0},
        filters=3 * (5 + 3),
    )


def finish(iterations, figures, batch):
    """Speed of the whole loop. Waiting: nothing was computed because no batch was ready."""
    counted = harness.without_first(iterations)
    computing = sum(i["seconds"] for i in counted)
    waiting = sum(i["seconds_waiting"] for i in counted)
    return {
        "images_per_second": batch * len(counted) / (computing + waiting),
        "waiting_share": waiting / (computing + waiting),
        "iterations": iterations,
        "wall_seconds": figures["wall_seconds"],
        "cpu_seconds": figures["cpu_seconds"],
        "peak_rss_bytes": figures["peak_rss_bytes"],
    }


def read_metrics(path):
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    iterations = [line for line in lines if "seconds" in line and "seconds_waiting" in line]
    if not iterations:
        raise BenchError(f"{path}: holds no iterations")
    return [
        {"seconds": i["seconds"], "seconds_waiting": i["seconds_waiting"], "images": i["images"]}
        for i in iterations
    ]


def run_lantern(arguments, cfg):
    with tempfile.TemporaryDirectory(prefix="bench-lantern-") as name:
        folder = pathlib.Path(name)
        harness.make_run_folder(folder, arguments.data, cfg)
        command = [
            arguments.lantern.resolve(),
            "detector",
            "train",
            "obj.data",
            "net.cfg",
            "-dont_show",
            "--threads",
            arguments.threads,
            "--log",
            "metrics.jsonl",
        ]
        if arguments.loader_threads:
            command += ["--loader-threads", arguments.loader_threads]
        figures = harness.run_process(command, folder, arguments.threads)
        return finish(read_metrics(folder / "metrics.jsonl"), figures, arguments.batch)


def run_darknet(arguments, cfg):
    iterations, figures = harness.train_with_darknet(
        arguments.darknet, arguments.data, cfg, arguments.threads
    )
    return finish(iterations, figures, arguments.batch)


def ratios(results):
    return [
        a["images_per_second"] / b["images_per_second"]
        for a, b in zip(results["lantern"], results["darknet"])
    ]


def main():
    arguments = parse_arguments()
    if not arguments.data.is_file():
        raise BenchError(f"{arguments.data} is not a file")
    harness.require_program(
        arguments.lantern,
        "build it with 'cmake --preset release && cmake --build --preset "
        "release', or name it with --lantern",
    )
    cfg = adapted_cfg(arguments)
    programs = {"lantern": lambda: run_lantern(arguments, cfg)}
    if not arguments.no_darknet:
        if not shutil.which(arguments.darknet):
            raise BenchError(
                f"{arguments.darknet} is not there: install the package 'darknet' "
                "or pass --no-darknet"
            )
        programs["darknet"] = lambda: run_darknet(arguments, cfg)
    harness.load_average_note()
    results = harness.in_turns(programs, arguments.rounds, not arguments.no_warm_up)
    if arguments.json:
        report = {
            "batch": arguments.batch,
            "threads": arguments.threads,
            "processor": harness.processor_name(),
            "rounds": results,
        }
        if "darknet" in results:
            report["ratios"] = ratios(results)
        print(json.dumps(report, indent=1))
        return 0
    rows = []
    for name, rounds in results.items():
        share = statistics.median(r["waiting_share"] for r in rounds)
        memory = statistics.median(r["peak_rss_bytes"] for r in rounds)
        rows.append(
            [
                "Lantern" if name == "lantern" else "darknet (Debian)",
                harness.spread([r["images_per_second"] for r in rounds]),
                f"{100 * share:.1f} %",
                "" if name == "lantern" else harness.spread(ratios(results)),
                f"{memory / MIB:.0f}",
            ]
        )
    header = [
        "program",
        "images/s: median (range)",
        "waiting for the loader",
        "speed-up of Lantern",
        "peak memory MiB",
    ]
    print(
        f"detector train, yolov3-tiny for 3 classes, batch {arguments.batch}, "
        f"iterations {arguments.iterations}, threads {arguments.threads}, "
        f"rounds {arguments.rounds}, {harness.processor_name()}\n"
    )
    print(harness.table(header, rows, arguments.markdown))
    return 0


if __name__ == "__main__":
    harness.main_with_errors(main)
