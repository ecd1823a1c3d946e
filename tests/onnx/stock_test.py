"""Published cfgs with random weights: what feeds each detection layer or softmax, from OpenCV's own reader of Darknet
files and from our engine: stock_test.py PROGRAM LIBRARY CFG_FOLDER.  Exit code 77: no OpenCV for this Python, or no
such folder."""

import os
import re
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

import nets
from engine import PROGRAM, Net, close_to

CFGS = sys.argv[3]
if not os.path.isdir(CFGS):
    print(f"skipped: no folder {CFGS}")
    sys.exit(77)

# Width and height; small, but of the strides that the network needs.
SIZES = {
    "darknet19": 64, "darknet53": 64, "densenet201": 64, "yolov2": 96, "yolov2-tiny": 96, "yolov3": 64,
    "yolov3-tiny": 96, "yolov3-spp": 64, "yolov4": 64, "yolov4-tiny": 96, "yolov4-tiny-3l": 96, "yolov4-csp": 64,
    "yolov7-tiny": 64, "enet-coco": 96, "csresnext50-panet-spp": 64, "csresnext50-panet-spp-original-optimal": 64,
    "yolov3-tiny-prn": 96,
}

# Networks that OpenCV 4.6 does not read, with words of its message. A newer one that reads them fails here: it can then
# be compared above.
UNREADABLE = {
    "Gaussian_yolov3_BDD": "Gaussian_yolo", "cifar": "crop", "crnn.train": "crnn", "efficientnet-lite3": "relu6",
    "cspx-p7-mish": "num_of_anchors", "cspx-p7-mish_hp": "num_of_anchors", "gru": "gru", "lstm.train": "lstm",
    "rnn": "rnn", "rnn.train": "rnn", "strided": "crop", "t1.test": "detection", "vgg-16": "crop",
    "yolov3-tiny_occlusion_track": "crnn", "yolov4-sam-mish-csp-reorg-bfm": "reorg3d",
    "yolov4-tiny_contrastive": "local_avgpool",
}
# Size, and words of the message: it adds maps of different sizes in no [shortcut].
UNRUNNABLE = {"resnet50": (64, "inputs.vecIdx..j. == inputs.i..j.")}

HEADS = ("yolo", "Gaussian_yolo", "region", "softmax")


def resized(text, size):
    net, rest = re.match(r"(.*?^\[net(?:work)?\].*?)(^\[.*)", text, re.S | re.M).groups()
    return re.sub(r"^(width|height)\s*=.*$", rf"\1={size}", net, flags=re.M) + rest


def sections_of(text):
    """[net], then the layers, each with its comments."""
    parts = re.split(r"^(?=\[)", text, flags=re.M)
    return [part for part in parts if part.startswith("[")]


def until(sections, count):
    """The network up to layer `count`, whose output is then the network's: heads on the way hand on what they get, and
    the last convolution gives what goes into its activation, which a logistic one would squeeze into 0 and 1."""
    handing_on = "[route]\nlayers=-1\n\n"
    layers = [re.sub(r"^\[(%s)\].*" % "|".join(HEADS), handing_on, s, flags=re.S) for s in sections[1:count + 1]]
    layers[-1] = re.sub(r"^activation\s*=.*$", "activation=linear", layers[-1], flags=re.M)
    return "".join([sections[0], *layers])


class StockTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="lantern_stock_")

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def values_of_ours(self, sections, weights, head, blob):
        cfg = self.write("head.cfg", until(sections, head))
        part = self.path("head.weights")
        subprocess.run([PROGRAM, "partial", self.path("net.cfg"), weights, part, str(head)], check=True,
                       capture_output=True)
        ours = Net(cfg, part)
        values = ours.predict(blob)
        ours.close()
        return values

    def compare(self, name, size):
        with open(os.path.join(CFGS, name + ".cfg")) as file:
            text = resized(file.read(), size)
        cfg, weights, adjusted = self.write("net.cfg", text), self.path("net.weights"), self.path("opencv.weights")
        rng = np.random.default_rng(5)
        nets.write_weights(PROGRAM, cfg, weights, rng)
        nets.with_epsilon_of_opencv(PROGRAM, cfg, weights, adjusted)
        layers = nets.layers_of(PROGRAM, cfg)
        heads = [i for i, (kind, _, _) in enumerate(layers) if kind in HEADS]
        self.assertTrue(heads)
        blob = rng.uniform(0, 1, (1, 3, size, size)).astype(np.float32)
        reader = cv2.dnn.readNetFromDarknet(cfg, adjusted)
        os.remove(adjusted)
        reader.setInput(blob)
        names = []
        for i in heads:
            kind = layers[i - 1][0]
            names.append(f"{'conv' if kind == 'convolutional' else kind}_{i - 1}")
        theirs = reader.forward(names)
        sections = sections_of(text)
        errors = [close_to(self, self.values_of_ours(sections, weights, i, blob), want, f"{name}: layer {i - 1}")
                  for i, want in zip(heads, theirs)]
        largest = max(np.abs(t).max() for t in theirs)
        print(f"{name:40} {size:4}  heads {len(heads)}  largest {largest:9.3g}  error {max(errors):.1e}", flush=True)

    def test_agrees_with_opencv(self):
        for name, size in SIZES.items():
            with self.subTest(name):
                self.compare(name, size)

    def test_names_what_opencv_does_not_read(self):
        for name, word in UNREADABLE.items():
            with self.subTest(name), self.assertRaisesRegex(cv2.error, word):
                cv2.dnn.readNetFromDarknet(os.path.join(CFGS, name + ".cfg"))

    def test_names_what_opencv_reads_but_does_not_run(self):
        for name, (size, word) in UNRUNNABLE.items():
            with self.subTest(name), self.assertRaisesRegex(cv2.error, word):
                self.compare(name, size)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
