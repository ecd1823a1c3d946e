"""Trains a Darknet cfg with PyTorch on made-up pictures and prints one JSON object.

The loss is the sum of squares of (sigmoid(head) - target): a little less work than [yolo].
"""

import argparse
import json
import resource
import time

import torch
import torch.nn.functional as F
from torch import nn


def read_cfg(path):
    sections = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = line.split("#")[0].strip()
            if line.startswith("["):
                sections.append((line[1 : line.index("]")], {}))
            elif line:
                key, value = line.split("=", 1)
                sections[-1][1][key.strip()] = value.strip()
    return sections


class MaxPool(nn.Module):
    """[maxpool]: size - 1 cells of padding, never the largest; the smaller half is above."""

    def __init__(self, size, stride):
        super().__init__()
        self.size, self.stride = size, stride

    def forward(self, x):
        side = (x.shape[-1] - 1) // self.stride + 1
        before = (self.size - 1) // 2
        after = max(0, (side - 1) * self.stride + self.size - x.shape[-1] - before)
        if before != after:
            x = F.pad(x, (before, after, before, after), value=float("-inf"))
            before = 0
        return F.max_pool2d(x, self.size, self.stride, before)


class Network(nn.Module):
    def __init__(self, sections):
        super().__init__()
        self.steps = []  # (kind, index of a module or layers to read)
        self.blocks = nn.ModuleList()
        channels = [int(sections[0][1].get("channels", 3))]
        for kind, keys in sections[1:]:
            layer = len(self.steps)
            number = lambda key, otherwise=1, keys=keys: int(keys.get(key, otherwise))
            if kind == "convolutional":
                size, filters = number("size"), number("filters")
                normalized = number("batch_normalize", 0) != 0
                parts = [
                    nn.Conv2d(
                        channels[-1],
                        filters,
                        size,
                        number("stride"),
                        size // 2 if number("pad", 0) else 0,
                        bias=not normalized,
                    )
                ]
                if normalized:
                    parts.append(nn.BatchNorm2d(filters, eps=1e-5, momentum=0.01))
                if keys["activation"] == "leaky":
                    parts.append(nn.LeakyReLU(0.1, inplace=True))
                elif keys["activation"] != "linear":
                    raise SystemExit(
                        f"error: layer {layer}: activation {keys['activation']} is not known here"
                    )
                self.add_block(nn.Sequential(*parts))
            elif kind == "maxpool":
                filters = channels[-1]
                self.add_block(MaxPool(number("size", number("stride")), number("stride")))
            elif kind == "upsample":
                filters = channels[-1]
                self.add_block(nn.Upsample(scale_factor=number("stride", 2), mode="nearest"))
            elif kind == "route":
                sources = [int(s) for s in keys["layers"].split(",")]
                sources = [s if s >= 0 else layer + s for s in sources]
                filters = sum(channels[s + 1] for s in sources)
                self.steps.append(("route", sources))
            elif kind == "yolo":
                filters = channels[-1]
                self.steps.append(("yolo", None))
            else:
                raise SystemExit(f"error: layer {layer}: [{kind}] is not known here")
            channels.append(filters)
        # Maps that a [route] reads later; all others may go as soon as PyTorch lets them.
        self.kept = {s for kind, sources in self.steps if kind == "route" for s in sources}

    def add_block(self, module):
        self.steps.append(("block", len(self.blocks)))
        self.blocks.append(module)

    def forward(self, x):
        kept, heads = {}, []
        for layer, (kind, argument) in enumerate(self.steps):
            if kind == "block":
                x = self.blocks[argument](x)
            elif kind == "route":
                x = (
                    kept[argument[0]]
                    if len(argument) == 1
                    else torch.cat([kept[s] for s in argument], 1)
                )
            else:
                heads.append(x)
            if layer in self.kept:
                kept[layer] = x
        return heads


def weights_in_file(network):
    """Values that a .weights file of this network holds: trained ones and rolling statistics."""
    rolling = sum(b.numel() for name, b in network.named_buffers() if "running" in name)
    return sum(p.numel() for p in network.parameters()) + rolling


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cfg")
    parser.add_argument("--mini-batch", type=int, default=8)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--layout", choices=("channels_last", "nchw"), default="channels_last")
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    sections = read_cfg(arguments.cfg)
    net = sections[0][1]
    layout = torch.channels_last if arguments.layout == "channels_last" else torch.contiguous_format
    network = Network(sections).to(memory_format=layout).train()
    decay = [p for p in network.parameters() if p.dim() == 4]
    plain = [p for p in network.parameters() if p.dim() != 4]
    optimizer = torch.optim.SGD(
        [
            {"params": decay, "weight_decay": float(net.get("decay", 0.0001))},
            {"params": plain, "weight_decay": 0.0},
        ],
        lr=0.0,
        momentum=float(net["momentum"]),
    )
    images = torch.rand(
        arguments.mini_batch, int(net.get("channels", 3)), int(net["height"]), int(net["width"])
    )
    images = images.contiguous(memory_format=layout)
    with torch.no_grad():
        network.eval()
        targets = [torch.rand_like(head) for head in network(images[:1])]
        targets = [
            t.expand(arguments.mini_batch, -1, -1, -1).contiguous(memory_format=layout)
            for t in targets
        ]
        network.train()

    seconds = []
    loss = None
    for iteration in range(1, arguments.iterations + 1):
        start = time.perf_counter()
        rate = (
            float(net["learning_rate"])
            * min(1.0, iteration / max(1, int(net.get("burn_in", 1)))) ** 4
        )
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad(set_to_none=True)
        loss = sum(
            ((head.sigmoid() - target) ** 2).sum() for head, target in zip(network(images), targets)
        )
        loss = loss / arguments.mini_batch
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    if not torch.isfinite(loss):
        raise SystemExit("error: the loss is not finite")
    print(
        json.dumps(
            {
                "seconds": seconds,
                "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                "weights": weights_in_file(network),
                "loss": loss.item(),
                "threads": torch.get_num_threads(),
                "layout": arguments.layout,
                "version": torch.__version__,
            }
        )
    )


if __name__ == "__main__":
    main()
