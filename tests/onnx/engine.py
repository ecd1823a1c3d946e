"""Our engine through its C interface, for tests in Python, and the comparison of two results."""

import ctypes as ct
import sys

import numpy as np

PROGRAM, LIBRARY = sys.argv[1:3]
TOLERANCE = 1e-4  # of the largest value, or of 1


class Box(ct.Structure):
    _fields_ = [(n, ct.c_float) for n in "xywh"]


class Image(ct.Structure):
    _fields_ = [("w", ct.c_int), ("h", ct.c_int), ("c", ct.c_int), ("data", ct.c_void_p)]


class Detection(ct.Structure):
    _fields_ = [("bbox", Box), ("classes", ct.c_int), ("best", ct.c_int), ("prob", ct.POINTER(ct.c_float)),
                ("mask", ct.c_void_p), ("objectness", ct.c_float), ("sort_class", ct.c_int), ("uc", ct.c_void_p),
                ("points", ct.c_int), ("embeddings", ct.c_void_p), ("embedding_size", ct.c_int), ("sim", ct.c_float),
                ("track_id", ct.c_int)]


lib = ct.CDLL(LIBRARY)
for name, result, arguments in (
        ("load_network_custom", ct.c_void_p, [ct.c_char_p, ct.c_char_p, ct.c_int, ct.c_int]),
        ("network_predict", ct.POINTER(ct.c_float), [ct.c_void_p, ct.c_void_p]),
        ("network_outputs", ct.c_int, [ct.c_void_p]), ("network_width", ct.c_int, [ct.c_void_p]),
        ("network_height", ct.c_int, [ct.c_void_p]), ("network_channels", ct.c_int, [ct.c_void_p]),
        ("free_network", None, [ct.c_void_p]), ("last_error", ct.c_char_p, []),
        ("get_network_boxes", ct.POINTER(Detection), [ct.c_void_p, ct.c_int, ct.c_int, ct.c_float, ct.c_float,
                                                      ct.c_void_p, ct.c_int, ct.POINTER(ct.c_int), ct.c_int]),
        ("free_detections", None, [ct.POINTER(Detection), ct.c_int])):
    function = getattr(lib, "lantern_" + name)
    function.restype, function.argtypes = result, arguments


class Net:
    """Our engine through the C interface."""

    def __init__(self, cfg, weights, batch=1):
        self.handle = lib.lantern_load_network_custom(cfg.encode(), weights.encode(), 0, batch)
        assert self.handle, lib.lantern_last_error()
        self.batch = batch
        self.shape = tuple(getattr(lib, "lantern_network_" + n)(self.handle) for n in ("channels", "height", "width"))

    def predict(self, blob):
        self.blob = np.ascontiguousarray(blob, np.float32)
        values = lib.lantern_network_predict(self.handle, self.blob.ctypes.data)
        count = lib.lantern_network_outputs(self.handle) * self.batch
        return np.ctypeslib.as_array(values, (count,)).copy()

    def all_boxes(self):
        """Boxes [B, 4] and scores [B, classes] of the last predict: a threshold below every value."""
        num = ct.c_int(0)
        dets = lib.lantern_get_network_boxes(self.handle, 1, 1, -1e30, 0, None, 1, ct.byref(num), 0)
        boxes = np.array([[d.bbox.x, d.bbox.y, d.bbox.w, d.bbox.h] for d in dets[:num.value]])
        scores = np.array([d.prob[:d.classes] for d in dets[:num.value]])
        lib.lantern_free_detections(dets, num.value)
        return boxes, scores

    def close(self):
        lib.lantern_free_network(self.handle)


def close_to(test, actual, expected, what):
    actual, expected = np.asarray(actual, np.float64).ravel(), np.asarray(expected, np.float64).ravel()
    test.assertEqual(actual.size, expected.size, what)
    test.assertTrue(np.isfinite(actual).all() and np.isfinite(expected).all(), what)
    test.assertGreater(np.std(expected), 1e-6, f"{what}: nothing to compare")
    error = np.abs(actual - expected).max() / max(1, np.abs(expected).max())
    test.assertLessEqual(error, TOLERANCE, what)
    return error
