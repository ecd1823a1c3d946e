"""Tests of the comparison scripts, without the programs that they compare."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

import compare_opencv
import harness

DARKNET_OUTPUT = """yolov3-tiny
Loaded: 0.250000 seconds
Region 16 Avg IOU: 0.23, Class: 0.44, Obj: 0.5, No Obj: 0.45, .5R: 0.0, .75R: 0.0,  count: 3
1: 812.500000, 812.500000 avg, 0.000000 rate, 2.500000 seconds, 8 images
Loaded: 0.000040 seconds
2: -nan, -nan avg, 0.000000 rate, 2.750000 seconds, 16 images
Saving weights to backup/net_final.weights
"""


class HarnessTest(unittest.TestCase):
    def test_darknet_lines(self):
        found = harness.parse_darknet(DARKNET_OUTPUT)
        self.assertEqual(
            found,
            [
                {"seconds": 2.5, "seconds_waiting": 0.25, "images": 8},
                {"seconds": 2.75, "seconds_waiting": 0.00004, "images": 16},
            ],
        )
        with self.assertRaisesRegex(harness.BenchError, "Segmentation"):
            harness.parse_darknet("Segmentation fault")

    def test_cfg_for_other_classes(self):
        text = harness.edit_cfg(
            harness.STOCK_CFG.read_text(), {"batch": 8}, {"classes": 3, "random": 0}, filters=24
        )
        self.assertEqual(text.count("filters=24\n"), 2)
        self.assertEqual(text.count("filters=255"), 0)
        self.assertEqual(text.count("classes=3\n"), 2)
        self.assertEqual(text.count("random=0\n"), 2)
        self.assertIn("batch=8\n", text)
        self.assertEqual(text.count("["), 25)  # [net] and 24 layers, all kept
        self.assertEqual(text.count("[convolutional]"), 13)

    def test_run_folder_resolves_from_itself(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            harness.make_run_folder(folder, harness.DATA, "[net]\n")
            paths = (folder / "train.txt").read_text().split()
            self.assertTrue(paths)
            for path in paths:
                self.assertTrue((folder / path).is_file(), path)
                self.assertTrue((folder / path).with_suffix(".txt").is_file(), path)
            keys = harness.read_data_file(folder / "obj.data")
            self.assertEqual(keys["classes"], "3")
            for key in ("train", "names", "backup"):
                self.assertTrue((folder / keys[key]).exists(), key)

    def test_process_figures(self):
        code = "data = bytearray(64 << 20); print(len(data))"
        found = harness.run_process([sys.executable, "-c", code], "/", 1)
        self.assertEqual(int(found["stdout"]), 64 << 20)
        self.assertGreater(found["peak_rss_bytes"], 64 << 20)
        self.assertGreater(found["wall_seconds"], 0)
        failing = "import sys; print('it broke', file=sys.stderr); sys.exit(3)"
        with self.assertRaisesRegex(harness.BenchError, "ended with code 3: it broke"):
            harness.run_process([sys.executable, "-c", failing], "/", 1)

    def test_turns_alternate_and_the_warm_up_is_not_counted(self):
        order = []

        def program(name):
            def run():
                order.append(name)
                return {"images_per_second": float(len(order))}

            return run

        with contextlib.redirect_stderr(io.StringIO()):
            results = harness.in_turns({n: program(n) for n in "ab"}, rounds=2, warm_up=True)
        self.assertEqual(order, list("ababab"))
        self.assertEqual([r["images_per_second"] for r in results["a"]], [3, 5])
        self.assertEqual([r["images_per_second"] for r in results["b"]], [4, 6])

    def test_table(self):
        rows = [["x", "1.00 (0.50-2.00)"]]
        self.assertEqual(
            harness.table(["a", "b"], rows, True),
            "| a | b |\n| --- | --- |\n| x | 1.00 (0.50-2.00) |",
        )
        self.assertEqual(harness.spread([2, 0.5, 1]), "1.00 (0.50-2.00)")


class OpenCvTest(unittest.TestCase):
    def turn(self, seconds, layers=()):
        keys = ("layer", "section", "op", "kernel", "share")
        return {
            "seconds": seconds,
            "peak_rss_bytes": 3 << 20,
            "layers": [dict(zip(keys, layer)) for layer in layers],
        }

    def test_ratios_are_those_of_each_round(self):
        turns = {
            "lantern": [self.turn([0.010, 0.012, 0.500]), self.turn([0.020])],
            "opencv": [self.turn([0.036]), self.turn([0.040])],
        }
        self.assertEqual(
            compare_opencv.row_of("net", turns),
            ["net", "16.0 (12.0-20.0)", "38.0 (36.0-40.0)", "2.50 (2.00-3.00)", "3", "3"],
        )

    def test_shares_of_a_group_add_up_within_a_turn(self):
        a = self.turn(
            [1],
            [(0, "conv", "f", "x", 0.2), (1, "conv", "f", "x", 0.3), (2, "yolo", "g", "y", 0.5)],
        )
        b = self.turn([1], [(0, "conv", "f", "x", 0.4), (2, "yolo", "g", "y", 0.2)])
        kernels = compare_opencv.shares([a, b], lambda layer: layer["kernel"], 2)
        self.assertEqual(kernels, "x 45 %, y 35 %")
        self.assertEqual(compare_opencv.shares([a, b], lambda layer: layer["layer"], 1), "2 35 %")


if __name__ == "__main__":
    unittest.main()
