"""Small networks that cover every layer kind of the export, with made-up weights in Darknet's file format."""

import re
import struct
import subprocess

import numpy as np

NET = "[net]\nwidth={w}\nheight={h}\nchannels={c}\nbatch=1\nsubdivisions=1\n"


def conv(filters, size=3, activation="leaky", bn=1, **keys):
    lines = {"filters": filters, "size": size, "pad": 1, "activation": activation, **keys}
    if bn:
        lines = {"batch_normalize": 1, **lines}
    return section("convolutional", **lines)


def section(kind, **keys):
    return f"[{kind}]\n" + "".join(f"{k}={v}\n" for k, v in keys.items())


def net(*sections, w=32, h=24, c=3):
    return NET.format(w=w, h=h, c=c) + "".join(sections)


def anchors_of(count):
    return ", ".join(f"{5 + 3 * i},{7 + 2 * i}" for i in range(count))


ACTIVATIONS = ("linear leaky relu relu6 relie ramp logistic loggy tanh elu selu gelu swish mish hard_mish plse hardtan "
               "lhtan stair revleaky normalize_channels normalize_channels_softmax "
               "normalize_channels_softmax_maxval").split()
# What OpenCV's own reader of Darknet files knows, too.
ACTIVATIONS_OF_OPENCV = {"linear", "leaky", "relu", "logistic", "tanh", "swish", "mish"}

# Those whose nodes OpenCV 4.6 does not know in the form of opset 13.
NEEDS_REWRITING = {f"activation_{a}" for a in ACTIVATIONS
                   if a in ("relu6", "hard_mish", "plse", "hardtan", "lhtan") or a.startswith("normalize")}

# Networks without detection layers: the last layer is compared. True: OpenCV reads the cfg as well.
PLAIN = {f"activation_{a}": (net(conv(6, activation=a), conv(5, 1, "linear", bn=0)), a in ACTIVATIONS_OF_OPENCV)
         for a in ACTIVATIONS}
PLAIN.update({
    "conv_groups": (net(conv(8), conv(12, groups=4, stride=2), conv(6, 5, "linear", bn=0)), True),
    "conv_dilation_strides": (net(conv(8), conv(6, 3, dilation=2, stride_x=2, stride_y=1), conv(5, 2, "linear", bn=0)), False),
    "conv_odd_strides": (net(conv(8, 3, stride=3), conv(6, 1, "linear", bn=0, stride=2), w=31, h=25), True),
    "maxpools": (net(conv(6), section("maxpool", size=2, stride=2), section("maxpool", size=2, stride=1),
                     section("maxpool", size=5, stride=1), section("maxpool", size=3, stride=2)), False),
    "maxpool_2_2": (net(conv(6), section("maxpool", size=2, stride=2), conv(6, 1)), True),
    "maxpool_depth": (net(conv(6), section("maxpool", maxpool_depth=1, out_channels=2, size=1, stride=1)), False),
    "routes": (net(conv(8), conv(6), section("route", layers="-1,-2"), conv(4, 1),
                   section("route", layers="-3", groups=2, group_id=1), section("route", layers="-1,0")), True),
    "shortcuts": (net(conv(8), conv(8), section("shortcut", **{"from": -2}, activation="linear"), conv(8, 1),
                      section("shortcut", **{"from": -2}, activation="leaky")), False),
    "shortcut_linear": (net(conv(8), conv(8), section("shortcut", **{"from": -2}, activation="linear"), conv(3, 1)), True),
    "shortcut_more_channels": (net(conv(8), conv(5), section("shortcut", **{"from": -2}, activation="linear")), False),
    "shortcut_fewer_channels": (net(conv(5), conv(8), section("shortcut", **{"from": -2}, activation="linear")), False),
    "weighted_per_feature": (net(conv(8), conv(8), conv(8), section(
        "shortcut", **{"from": "-2,-3"}, weights_type="per_feature", weights_normalization="relu", activation="linear")), False),
    "weighted_per_channel": (net(conv(8), conv(8), section(
        "shortcut", **{"from": "-2"}, weights_type="per_channel", weights_normalization="softmax", activation="leaky")), False),
    "upsample": (net(conv(6, stride=2), section("upsample", stride=2), conv(4, 1)), True),
    "upsample_scale": (net(conv(6, stride=2), section("upsample", stride=3, scale=0.5)), False),
    "upsample_reduce": (net(conv(6), section("upsample", stride=-2)), False),
    "attention": (net(conv(6), conv(8, 1), section("avgpool"), conv(6, 1, "logistic", bn=0),
                      section("scale_channels", **{"from": 0}, activation="linear"), conv(4, 1)), True),
    "scale_wh": (net(conv(6), conv(1, 1, "logistic", bn=0), section("scale_channels", **{"from": 0}, scale_wh=1)), False),
    "sam": (net(conv(6), conv(6, 1, "logistic"), section("sam", **{"from": 0}, activation="linear")), True),
    "local_avgpool": (net(conv(6), section("local_avgpool", size=3, stride=2, padding=2)), False),
    "reorg": (net(conv(8), section("reorg", stride=2), conv(4, 1)), True),
    "reorg_reverse": (net(conv(8), section("reorg", stride=2, reverse=1)), False),
    "reorg3d": (net(conv(6), section("reorg3d", stride=2)), False),
    "reorg3d_reverse": (net(conv(8), section("reorg3d", stride=2, reverse=1)), False),
    "batchnorm": (net(conv(6, bn=0), section("batchnorm"), section("activation", activation="mish"),
                      section("dropout", probability=0.5), conv(3, 1)), False),
    "classifier": (net(conv(8, stride=2), conv(10, 1, "linear", bn=0), section("avgpool"), section("softmax")), True),
    "connected": (net(conv(4, stride=4), section("connected", output=12, activation="relu", batch_normalize=1),
                      section("connected", output=6, activation="linear"),
                      section("softmax", groups=2, temperature=2), section("cost", type="sse")), False),
    "softmax_spatial": (net(conv(6, activation="linear"), section("softmax", spatial=1)), False),
    "shared_weights": (net(conv(3), conv(3), conv(3, share_index=1), conv(3, bn=0), conv(3, bn=0, share_index=3)), False),
})

HEADS_TWO = (conv(8, stride=2), conv(8, stride=2), conv(3 * 7, 1, "{a}", bn=0),
             section("yolo", mask="3,4,5", anchors=anchors_of(6), classes=2, num=6, scale_x_y=1.1, **{"{n}": 1}),
             section("route", layers=-3), section("upsample", stride=2), section("route", layers="-1,0"),
             conv(3 * 7, 1, "{a}", bn=0),
             section("yolo", mask="0,1,2", anchors=anchors_of(6), classes=2, num=6, scale_x_y=1.05, **{"{n}": 1}))


def two_heads(activation, new_coords):
    text = net(*HEADS_TWO)
    return text.replace("{a}", activation).replace("{n}=1", f"new_coords={int(new_coords)}")


# Detectors.  True: OpenCV reads the cfg as well.
DETECTORS = {
    "yolo": (two_heads("linear", False), True),
    "yolo_new_coords": (two_heads("logistic", True), True),
    "gaussian": (net(conv(8, stride=4), conv(2 * 11, 1, "linear", bn=0), section(
        "Gaussian_yolo", mask="0,1", anchors=anchors_of(2), classes=2, num=2, scale_x_y=1.2)), False),
    "gaussian_corner": (net(conv(8, stride=4), conv(2 * 11, 1, "linear", bn=0), section(
        "Gaussian_yolo", mask="1,0", anchors=anchors_of(2), classes=2, num=2, yolo_point="left_top")), False),
    "region": (net(conv(8, stride=4), conv(2 * 8, 1, "linear", bn=0), section(
        "region", anchors="1.2,0.8, 2.5,3.1", classes=3, num=2, softmax=1, bias_match=1)), False),
    "region_plain": (net(conv(8, stride=4), conv(2 * 8, 1, "logistic", bn=0), section(
        "region", anchors="1.2,0.8, 2.5,3.1", classes=3, num=2, softmax=0)), False),
    "region_coords": (net(conv(8, stride=4), conv(2 * 10, 1, "linear", bn=0), section(
        "region", anchors="1.2,0.8, 2.5,3.1", classes=3, num=2, coords=6, softmax=1)), False),
}

# What is refused, the word that says why, and flags. The file nodes.tree stands beside the cfg.
TREE = "animal -1\nthing -1\ncat 0\ndog 0\n"
REFUSED = {
    "shortcut_map": (net(conv(4, stride=2), conv(4, stride=2), section("shortcut", **{"from": 0}, activation="linear")),
                     "equal maps"),
    "maxpool_depth_odd": (net(conv(5), section("maxpool", maxpool_depth=1, out_channels=2, size=1, stride=1)), "out_channels=2"),
    "softmax_tree": (net(conv(4, 1), section("avgpool"), section("softmax", tree="nodes.tree")), "tree="),
    "region_tree": (net(conv(8, stride=4), conv(9, 1, "linear", bn=0), section(
        "region", anchors="1.2,0.8", classes=4, num=1, softmax=1, tree="nodes.tree")), "-heads raw", "-heads", "decoded"),
    "too_large": (net(*HEADS_TWO, w=416, h=416).replace("{a}", "linear").replace("{n}=1", "new_coords=0"), "2 GiB",
                  "-heads", "decoded", "-batch", "65536"),
}


def layers_of(program, cfg_path):
    """(section, keys, parameters) of every layer, as the program reads them."""
    text = subprocess.run([program, "dump", "--stage", "cfg", cfg_path], capture_output=True, text=True, check=True).stdout
    layers = []
    for part in re.split(r"\n(?=\[)", text)[1:]:
        head, *lines = part.strip().split("\n")
        kind = re.match(r"\[(\w+)\]", head).group(1)
        keys = dict(line.split("=", 1) for line in lines if "=" in line)
        layers.append((kind, keys, int(re.search(r"(\d+) parameters", head).group(1))))
    return layers


def sizes_of(kind, keys, total):
    """The arrays of a layer in the weights file: (what, count)."""
    bn = int(keys.get("batch_normalize", 0)) != 0
    four = ("scales", "mean", "variance")
    if kind == "convolutional":
        n = int(keys["filters"])
        arrays = [("biases", n)] + ([(a, n) for a in four] if bn else [])
        return arrays + [("weights", total - sum(c for _, c in arrays))]
    if kind == "connected":
        n = int(keys["output"])
        return [("biases", n), ("weights", total - n - (3 * n if bn else 0))] + ([(a, n) for a in four] if bn else [])
    if kind == "batchnorm":
        return [(a, total // 4) for a in ("biases",) + four]
    return [("weights", total)]


def write_weights(program, cfg_path, weights_path, rng):
    values = []
    for kind, keys, total in layers_of(program, cfg_path):
        if total == 0:
            continue
        for what, count in sizes_of(kind, keys, total):
            if what == "variance":
                values.append(rng.uniform(0.5, 1.5, count))
            elif what == "scales":
                values.append(rng.uniform(0.7, 1.3, count))
            elif what == "weights" and kind != "shortcut":
                outputs = int(keys.get("filters", keys.get("output", 1)))
                values.append(rng.standard_normal(count) * np.sqrt(2 * outputs / count))
            else:
                values.append(rng.standard_normal(count) * 0.3)
    data = np.concatenate(values).astype("<f4") if values else np.zeros(0, "<f4")
    with open(weights_path, "wb") as file:
        file.write(struct.pack("<iiiQ", 0, 2, 5, 0) + data.tobytes())


def with_epsilon_of_opencv(program, cfg_path, weights_path, out_path):
    """OpenCV reads Darknet files with 1e-6 in the batch norm where Darknet trains with 1e-5: the difference goes into
    the variances."""
    with open(weights_path, "rb") as file:
        raw = file.read()
    header = 20 if struct.unpack("<ii", raw[:8]) >= (0, 2) else 16
    values = np.frombuffer(raw[header:], "<f4").copy()
    place = 0
    for kind, keys, total in layers_of(program, cfg_path):
        for what, count in sizes_of(kind, keys, total) if total else []:
            if what == "variance":
                values[place:place + count] += np.float32(1e-5 - 1e-6)
            place += count
    assert place == len(values), (place, len(values))
    with open(out_path, "wb") as file:
        file.write(raw[:header] + values.tobytes())
