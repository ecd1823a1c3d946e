"""Parts that the whole-run comparisons share. Standard library only."""

import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
STOCK_CFG = REPOSITORY / "tests/data/cfg/yolov3-tiny.cfg"
LANTERN = REPOSITORY / "build/release/bin/lantern"
DARKNET = pathlib.Path("/usr/bin/darknet")
DATA = REPOSITORY / "examples/bccd/obj.data"
MIB = 1 << 20


class BenchError(Exception):
    """A cause and its mend in one line."""


def run_process(argv, cwd, threads):
    """Runs a program to its end; the figures are those of getrusage for this child alone."""
    env = dict(os.environ, OMP_NUM_THREADS=str(threads))
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.monotonic()
        process = subprocess.Popen(
            [str(a) for a in argv],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            text=True,
        )
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        stdout, stderr = out.read(), err.read()
    if process.returncode != 0:
        lines = [line for line in (stderr.strip() or stdout.strip()).splitlines() if line.strip()]
        last = lines[-1] if lines else "no output"
        raise BenchError(
            f"'{' '.join(str(a) for a in argv)}' ended with code {process.returncode}: {last}"
        )
    return {
        "stdout": stdout,
        "stderr": stderr,
        "wall_seconds": wall,
        "peak_rss_bytes": usage.ru_maxrss * 1024,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
    }


def edit_cfg(text, net, head, filters=None):
    """The cfg with keys of [net] and of every [yolo] replaced.

    `filters` goes to the convolution before each head.
    """
    sections = []  # [name, lines]
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if line.startswith("["):
            sections.append((line, {}))
        elif line:
            key, value = (part.strip() for part in line.split("=", 1))
            sections[-1][1][key] = value
    for i, (name, keys) in enumerate(sections):
        if name == "[net]":
            keys.update({k: str(v) for k, v in net.items()})
        elif name == "[yolo]":
            keys.update({k: str(v) for k, v in head.items()})
            if filters is not None:
                sections[i - 1][1]["filters"] = str(filters)
    return "".join(
        name + "\n" + "".join(f"{k}={v}\n" for k, v in keys.items()) + "\n"
        for name, keys in sections
    )


def read_data_file(path):
    keys = {}
    for line in path.read_text().splitlines():
        if "=" in line and not line.strip().startswith("#"):
            key, value = line.split("=", 1)
            keys[key.strip()] = value.strip()
    for key in ("train", "names"):
        if key not in keys:
            raise BenchError(f"{path}: has no key '{key}'")
    return keys


def make_run_folder(folder, data_file, cfg_text):
    """A folder with net.cfg and obj.data; the paths in its lists start from this folder."""
    keys = read_data_file(data_file)
    base = data_file.resolve().parent
    (folder / "data").symlink_to(base)
    (folder / "backup").mkdir()
    lists = {"train": "train.txt"}
    if "valid" in keys:
        lists["valid"] = "valid.txt"
    for key, name in lists.items():
        paths = (base / keys[key]).read_text().split("\n")
        (folder / name).write_text("".join(f"data/{p.strip()}\n" for p in paths if p.strip()))
    shutil.copy(base / keys["names"], folder / "obj.names")
    (folder / "obj.data").write_text(
        f"classes = {keys.get('classes', '')}\n"
        + "".join(f"{key} = {name}\n" for key, name in lists.items())
        + "names = obj.names\nbackup = backup\n"
    )
    (folder / "net.cfg").write_text(cfg_text)


LOADED = re.compile(r"^Loaded: ([0-9.]+) seconds", re.M)
TRAINED = re.compile(r"^\d+: \S+, \S+ avg, \S+ rate, ([0-9.]+) seconds, (\d+) images", re.M)


def parse_darknet(stdout):
    """Seconds of computing and of waiting for the loader, and images so far, by iteration."""
    computing = [(float(s), int(n)) for s, n in TRAINED.findall(stdout)]
    waiting = [float(s) for s in LOADED.findall(stdout)]
    if not computing or len(waiting) < len(computing):
        raise BenchError(
            "darknet printed no line with seconds; its output ends: " + stdout.strip()[-200:]
        )
    return [
        {"seconds": s, "seconds_waiting": w, "images": n} for (s, n), w in zip(computing, waiting)
    ]


def train_with_darknet(program, data_file, cfg_text, threads):
    """`darknet detector train` in a folder of its own: iterations, whole-process figures."""
    with tempfile.TemporaryDirectory(prefix="bench-darknet-") as name:
        folder = pathlib.Path(name)
        make_run_folder(folder, data_file, cfg_text)
        figures = run_process(
            [program, "detector", "train", "obj.data", "net.cfg"], folder, threads
        )
    return parse_darknet(figures.pop("stdout")), figures


def without_first(values):
    """The first iteration touches new memory; it counts only when there is no other."""
    return values[1:] if len(values) > 1 else values


def spread(values, digits=2):
    """'median (min-max)'."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def table(header, rows, markdown):
    if markdown:
        lines = [header, ["---"] * len(header)] + rows
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)
    widths = [max(len(line[i]) for line in [header] + rows) for i in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
        for line in [header] + rows
    )


def load_average_note():
    """A warning when other programs keep the processors busy; the figures would not mean much."""
    load = os.getloadavg()[0]
    if load > 0.5:
        print(
            f"note: load average is {load:.1f} before the first run; figures need a machine with "
            f"nothing else running on its {os.cpu_count()} processors",
            file=sys.stderr,
        )


def processor_name():
    try:
        found = re.search(
            r"^model name\s*:\s*(.+)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M
        )
        return found.group(1).strip() if found else "unknown"
    except OSError:
        return "unknown"


def add_common_arguments(parser, rounds):
    parser.add_argument(
        "--rounds", type=positive, default=rounds, help="turns counted, after one warm-up turn"
    )
    parser.add_argument("--no-warm-up", action="store_true", help="count the first turn as well")
    parser.add_argument("--threads", type=positive, default=2)
    parser.add_argument("--lantern", type=pathlib.Path, default=LANTERN, metavar="PROGRAM")
    parser.add_argument("--darknet", type=pathlib.Path, default=DARKNET, metavar="PROGRAM")
    parser.add_argument(
        "--data", type=pathlib.Path, default=DATA, metavar="FILE", help="obj.data with the pictures"
    )
    parser.add_argument(
        "--no-install",
        action="store_true",
        help="do not install missing Debian packages; programs that are not there are left out",
    )
    parser.add_argument(
        "--json", action="store_true", help="everything that was measured, on standard output"
    )
    parser.add_argument("--markdown", action="store_true", help="the table as Markdown")


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("want a number >= 1")
    return value


def require_program(path, mend):
    if not os.access(path, os.X_OK) or path.is_dir():
        raise BenchError(f"{path} is not a program: {mend}")


def in_turns(programs, rounds, warm_up):
    """Runs {name: function} in turns A B A B ...; returns {name: [result by round]}."""
    results = {name: [] for name in programs}
    for turn in range(rounds + (1 if warm_up else 0)):
        counted = turn >= (1 if warm_up else 0)
        for name, run in programs.items():
            result = run()
            what = f"round {turn + (0 if warm_up else 1)}" if counted else "warm-up"
            print(f"{what}: {name}: {result['images_per_second']:.2f} images/s", file=sys.stderr)
            if counted:
                results[name].append(result)
    return results


def main_with_errors(main):
    try:
        sys.exit(main())
    except (BenchError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
