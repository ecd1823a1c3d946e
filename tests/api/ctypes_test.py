"""The C interface from Python with nothing but the standard library: ctypes_test.py LIBRARY WEIGHTS_FOLDER."""

import ctypes as ct
import json
import os
import sys
import threading
import unittest

LIBRARY, WEIGHTS = sys.argv[1], sys.argv[2]


class Box(ct.Structure):
    _fields_ = [(n, ct.c_float) for n in "xywh"]


class Image(ct.Structure):
    _fields_ = [("w", ct.c_int), ("h", ct.c_int), ("c", ct.c_int), ("data", ct.POINTER(ct.c_float))]


class Detection(ct.Structure):
    _fields_ = [
        ("bbox", Box), ("classes", ct.c_int), ("best_class_idx", ct.c_int), ("prob", ct.POINTER(ct.c_float)),
        ("mask", ct.POINTER(ct.c_float)), ("objectness", ct.c_float), ("sort_class", ct.c_int),
        ("uc", ct.POINTER(ct.c_float)), ("points", ct.c_int), ("embeddings", ct.POINTER(ct.c_float)),
        ("embedding_size", ct.c_int), ("sim", ct.c_float), ("track_id", ct.c_int)]


class Pair(ct.Structure):
    _fields_ = [("num", ct.c_int), ("dets", ct.POINTER(Detection))]


lib = ct.CDLL(LIBRARY)
Net = ct.c_void_p


def declare(name, result, *arguments):
    function = getattr(lib, name)
    function.restype, function.argtypes = result, arguments
    return function


last_error = declare("lantern_last_error", ct.c_char_p)
load = declare("lantern_load_network_custom", Net, ct.c_char_p, ct.c_char_p, ct.c_int, ct.c_int)
free = declare("lantern_free_network", None, Net)
load_image = declare("lantern_load_image_color", Image, ct.c_char_p, ct.c_int, ct.c_int)
make_image = declare("lantern_make_image", Image, ct.c_int, ct.c_int, ct.c_int)
copy_bytes = declare("lantern_copy_image_from_bytes", None, Image, ct.c_char_p)
free_image = declare("lantern_free_image", None, Image)
predict_image = declare("lantern_network_predict_image", ct.POINTER(ct.c_float), Net, Image)
get_boxes = declare("lantern_get_network_boxes", ct.POINTER(Detection), Net, ct.c_int, ct.c_int, ct.c_float,
                    ct.c_float, ct.POINTER(ct.c_int), ct.c_int, ct.POINTER(ct.c_int), ct.c_int)
predict_batch = declare("lantern_network_predict_batch", ct.POINTER(Pair), Net, Image, ct.c_int, ct.c_int, ct.c_int,
                        ct.c_float, ct.c_float, ct.POINTER(ct.c_int), ct.c_int, ct.c_int)
nms = declare("lantern_do_nms_sort", None, ct.POINTER(Detection), ct.c_int, ct.c_int, ct.c_float)
to_json = declare("lantern_detection_to_json", ct.c_void_p, ct.POINTER(Detection), ct.c_int, ct.c_int,
                  ct.POINTER(ct.c_char_p), ct.c_longlong, ct.c_char_p)
free_string = declare("lantern_free_string", None, ct.c_void_p)
free_detections = declare("lantern_free_detections", None, ct.POINTER(Detection), ct.c_int)
free_batch = declare("lantern_free_batch_detections", None, ct.POINTER(Pair), ct.c_int)


def path(*parts):
    return os.path.join(WEIGHTS, *parts).encode()


def face_net(batch=1):
    net = load(path("yoloface-50k", "yoloface-50k.cfg"), path("yoloface-50k", "yoloface-50k.weights"), 0, batch)
    assert net, last_error()
    return net


def detect_image(net, names, image, thresh=0.25, nms_thresh=0.45):
    """The usual function of Darknet's Python users: (name, confidence, box), most probable first."""
    num = ct.c_int(0)
    assert predict_image(net, image), last_error()
    dets = get_boxes(net, image.w, image.h, thresh, 0.5, None, 0, ct.byref(num), 0)
    nms(dets, num.value, len(names), nms_thresh)
    found = []
    for i in range(num.value):
        d = dets[i]
        if d.best_class_idx >= 0:
            found.append((names[d.best_class_idx], d.prob[d.best_class_idx], (d.bbox.x, d.bbox.y, d.bbox.w, d.bbox.h)))
    free_detections(dets, num)
    return found


class CtypesTest(unittest.TestCase):
    def test_detections_are_those_that_were_published(self):
        net = face_net()
        with open(path("expected", "yoloface-50k.json")) as file:
            expected = json.load(file)["variants"]["exact-input-bn1e-5"]
        pictures = 0
        for name, want in expected.items():
            image = load_image(path("expected", want["input_png"]), 0, 0)
            rows = [d for d in want["detections"] if d["confidence"] > 0.26]
            found = [d for d in detect_image(net, ["face"], image) if d[1] > 0.26]
            self.assertEqual(len(found), len(rows), name)
            for (label, confidence, box), row in zip(found, sorted(rows, key=lambda r: -r["confidence"])):
                self.assertEqual(label, "face")
                self.assertAlmostEqual(confidence, row["confidence"], delta=1e-4)
                self.assertAlmostEqual(box[0], row["box_norm"][0] * 56, delta=1e-2)
            free_image(image)
            pictures += 1
        self.assertGreater(pictures, 3)
        free(net)

    def test_bytes_of_a_frame(self):
        net = face_net()
        image = load_image(path("expected", "inputs", "dog_56x56.png"), 0, 0)
        frame = bytearray(56 * 56 * 3)
        for i in range(56 * 56):
            for c in range(3):
                frame[i * 3 + c] = round(image.data[c * 56 * 56 + i] * 255)
        copy = make_image(56, 56, 3)
        copy_bytes(copy, bytes(frame))
        self.assertEqual(detect_image(net, ["face"], copy), detect_image(net, ["face"], image))
        self.assertTrue(detect_image(net, ["face"], image))
        free_image(copy)
        free_image(image)
        free(net)

    def test_json_is_json(self):
        net = face_net()
        image = load_image(path("expected", "inputs", "dog_56x56.png"), 0, 0)
        num = ct.c_int(0)
        predict_image(net, image)
        dets = get_boxes(net, 56, 56, 0.25, 0.5, None, 1, ct.byref(num), 0)
        names = (ct.c_char_p * 1)(b"a \"face\"")
        text = to_json(dets, num.value, 1, names, 1, None)
        parsed = json.loads(ct.cast(text, ct.c_char_p).value)
        self.assertEqual(len(parsed["objects"]), num.value)
        self.assertEqual(parsed["objects"][0]["name"], 'a "face"')
        free_string(text)
        free_detections(dets, num.value)
        free_image(image)
        free(net)

    def test_threads_share_a_net_through_batches(self):
        net = face_net(2)
        image = load_image(path("expected", "inputs", "dog_56x56.png"), 0, 0)
        numbers = []

        def run():
            for _ in range(5):
                pairs = predict_batch(net, image, 1, 56, 56, 0.25, 0.5, None, 1, 0)
                numbers.append((pairs[0].num, pairs[0].dets[0].objectness))
                free_batch(pairs, 1)

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(numbers), 20)
        self.assertEqual(len(set(numbers)), 1)
        free_image(image)
        free(net)

    def test_errors_are_those_of_the_thread(self):
        self.assertFalse(load(b"/nowhere.cfg", b"/nowhere.weights", 0, 1))
        self.assertIn(b"/nowhere.cfg", last_error())
        seen = []
        thread = threading.Thread(target=lambda: seen.append(last_error()))
        thread.start()
        thread.join()
        self.assertEqual(seen, [b""])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
