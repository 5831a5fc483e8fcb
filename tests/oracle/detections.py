"""More cases: TFLite_Detection_PostProcess, the custom operator behind object detectors; importing this registers them.

TensorFlow Lite Micro and LiteRT leave what is behind the last detection as it was, where classes are not taken one by one; it counts as zeros here. Of more
classes than one of a box Micro writes only every other row, so that LiteRT is the truth; of uint8 numbers too, which Micro refuses. int8 ones both refuse: the
truth is the file that has DEQUANTIZE before the operator."""

import numpy as np

from cases import CASES, TRUTH, Builder, case

BEFORE = set(CASES)


def anchors(count):
    """Overlapping boxes of three sizes over a picture."""
    side = int(np.ceil(np.sqrt(count / 3)))
    centre = (np.arange(side) + 0.5) / side
    grid = [(y, x, size, size * (1.5 - 0.5 * turn)) for y in centre for x in centre for turn, size in enumerate((0.25, 0.4, 0.6))]
    return np.array(grid[:count], np.float32)


def scores(rng, runs, count, row, steps):
    """Few boxes have high scores; `steps` of them, so that some are equal."""
    values = rng.beta(0.6, 1.5, (runs, 1, count, row))
    return (np.round(values * steps) / steps).astype(np.float32)


def told(outputs):
    """Zeros behind the last detection."""
    boxes, classes, best, count = outputs
    for run in range(len(count)):
        rows = int(count[run, 0]) * (classes.shape[2] // LIMITS.get(classes.shape[2], classes.shape[2]))
        boxes[run, 0, rows:] = classes[run, 0, rows:] = best[run, 0, rows:] = 0
    return outputs


# The most boxes, where there are several rows of each.
LIMITS = {}


def detector(name, count, labels, most, dtype="float32", width=4, background=1, steps=10**6, classes=1, runs=4, dequantised=True, **options):
    options = dict(max_detections=most, max_classes_per_detection=classes, num_classes=labels, nms_score_threshold=0.3, nms_iou_threshold=0.5, y_scale=10.0,
                   x_scale=10.0, h_scale=5.0, w_scale=5.0) | options
    rows = most * classes
    if classes > 1:
        assert LIMITS.setdefault(rows, most) == most, name
    else:
        assert rows not in LIMITS, name
    q = [{}] * 3
    if dtype != "float32":
        zero = -128 if dtype == "int8" else 0
        q = [dict(scale=0.06, zero_point=zero + 120), dict(scale=1 / 256, zero_point=zero), dict(scale=1 / 200, zero_point=zero + 3)]

    def file(given, real):
        """`real`: int8 numbers are dequantised by operators of their own."""
        b = Builder()
        shapes = (1, count, width), (1, count, labels + background)
        inputs = [b.tensor(shape, dtype, **q) for shape, q in zip(shapes, q)]
        operands = [*inputs, b.const(given, dtype, **q[2])]
        if real:
            whole = [b.tensor((*shape,), "float32") for shape in (*shapes, (count, 4))]
            for x, y in zip(operands, whole):
                b.op("DEQUANTIZE", [x], [y], "DequantizeOptions", version=2)
            operands = whole
        outputs = [b.tensor(shape, "float32") for shape in ((1, rows, 4), (1, rows), (1, rows), (1,))]
        b.custom("TFLite_Detection_PostProcess", operands, outputs, **options)
        return b.finish(inputs, outputs)

    @case(f"detections_{name}")
    def make(rng):
        boxes = rng.normal(0, 2, (runs, 1, count, width)).astype(np.float32)
        given = [boxes, scores(rng, runs, count, labels + background, steps)]
        fixed = anchors(count)
        if dtype != "float32":
            info = np.iinfo(dtype)
            stored = [np.clip(np.round(x / q["scale"]) + q["zero_point"], info.min, info.max).astype(dtype) for x, q in zip([*given, fixed], q)]
            *given, fixed = stored
        if dtype == "int8":
            TRUTH[f"detections_{name}"] = file(fixed, True)
        return file(fixed, False), runs, given


detector("fast", 60, 5, 8)
detector("fast_all_classes", 60, 5, 8, background=0)
detector("fast_equal_scores", 75, 4, 12, steps=8, nms_iou_threshold=0.4)
detector("fast_few", 20, 3, 30, nms_iou_threshold=0.2)
detector("fast_none", 20, 3, 5, nms_score_threshold=1.5)
detector("fast_overlapping", 40, 3, 50, nms_score_threshold=-1.0, nms_iou_threshold=1.0, runs=2)
detector("fast_keypoints", 45, 2, 10, width=9)
detector("fast_scales", 45, 2, 10, y_scale=4.0, x_scale=9.0, h_scale=2.5, w_scale=6.0)
detector("fast_one_class", 30, 1, 6, background=0, steps=8)
detector("fast_two_classes", 60, 5, 7, classes=2)
detector("fast_three_classes_equal", 30, 3, 5, classes=3, background=0)
detector("regular", 60, 5, 8, use_regular_nms=True, detections_per_class=100)
detector("regular_few_of_each", 60, 5, 9, use_regular_nms=True, detections_per_class=2)
detector("regular_no_number", 75, 4, 16, use_regular_nms=True, background=0, steps=8)
detector("regular_none", 20, 3, 4, use_regular_nms=True, nms_score_threshold=1.5)
detector("regular_large", 150, 20, 40, use_regular_nms=True, detections_per_class=10, nms_iou_threshold=0.6, runs=2)
detector("fast_legacy", 60, 5, 8, dtype="uint8")
detector("regular_legacy", 60, 5, 8, dtype="uint8", use_regular_nms=True, detections_per_class=100)
detector("fast_int8", 60, 5, 8, dtype="int8")

NAMES = set(CASES) - BEFORE
# Cases that LiteRT computes.
OTHERS = {name for name in NAMES if "legacy" in name or "classes" in name and "all" not in name}
