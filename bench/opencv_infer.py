"""Times the forward pass of a Darknet network in OpenCV's dnn module; prints one line of JSON."""

import argparse
import json
import time

import cv2
import numpy


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cfg")
    parser.add_argument("weights")
    parser.add_argument("--size", type=int, default=416)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()

    cv2.setNumThreads(arguments.threads)
    net = cv2.dnn.readNetFromDarknet(arguments.cfg, arguments.weights)
    net.setPreferableBackend(cv2.dnn.DNN_BACKEND_OPENCV)
    net.setPreferableTarget(cv2.dnn.DNN_TARGET_CPU)
    heads = net.getUnconnectedOutLayersNames()
    shape = (1, 3, arguments.size, arguments.size)
    image = numpy.random.default_rng(1).random(shape, dtype=numpy.float32)

    warm_up = 2
    seconds = []
    for i in range(warm_up + arguments.iterations):
        start = time.perf_counter()
        net.setInput(image)
        outputs = net.forward(heads)
        if i >= warm_up:
            seconds.append(time.perf_counter() - start)
    finite = all(bool(numpy.isfinite(output).all()) for output in outputs)
    print(json.dumps({"version": cv2.__version__, "seconds": seconds, "finite": finite}))


if __name__ == "__main__":
    main()
