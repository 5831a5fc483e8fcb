"""TFLite_Detection_PostProcess with a mistake each, for make_odd.py."""

import numpy as np

from tflite_builder import Builder

OPTIONS = dict(max_detections=5, max_classes_per_detection=1, num_classes=3, nms_score_threshold=0.3, nms_iou_threshold=0.5, y_scale=10.0, x_scale=10.0,
               h_scale=5.0, w_scale=5.0)


def detector(boxes=(1, 6, 4), row=4, anchors=6, rows=5, dtype="float32", drop=None, **options):
    b = Builder()
    scores = boxes[:-1] + (row,)
    x, p = b.tensor(boxes, dtype), b.tensor(scores, "float32")
    given = b.const(np.ones((anchors, 4), np.float32))
    outputs = [b.tensor(shape, "float32") for shape in ((1, rows, 4), (1, rows), (1, rows), (1,))]
    chosen = {name: value for name, value in (OPTIONS | options).items() if name != drop}
    b.custom("TFLite_Detection_PostProcess", [x, p, given], outputs, **chosen)
    return b.finish([x, p], outputs)


def write(odd):
    for name, file, error in [
        ("batch", detector((2, 6, 4)), ["encodings of shape [2, 6, 4], scores of shape [2, 6, 4]", "one image at a time"]),
        ("narrow", detector((1, 6, 3)), ["encodings of shape [1, 6, 3]", "[1, anchors, 4 or more]"]),
        ("anchors", detector(anchors=7), ["6 encodings, 6 rows of scores, 7 anchors"]),
        ("type", detector(dtype="int16"), ["operands of type int16", "expected f32, int8"]),
        ("unscaled", detector(dtype="int8"), ["has no quantisation"]),
        ("classes", detector(row=6), ["6 scores for each anchor", "3 (num_classes), or one more for a background"]),
        ("rows", detector(rows=6), ["has shape [1, 6, 4]", "expected [1, 5, 4], by the operator's options"]),
        ("many_classes", detector(max_classes_per_detection=4), ["max_classes_per_detection 4 of 3 classes", "at most 3"]),
        ("regular_classes", detector(max_classes_per_detection=2, use_regular_nms=True), ["use_regular_nms with max_classes_per_detection 2"]),
        ("regular_none", detector(use_regular_nms=True, detections_per_class=0), ["option `detections_per_class` is 0", "expected 1 to"]),
        ("most", detector(max_detections=-1), ["option `max_detections` is -1"]),
        ("no_most", detector(drop="max_detections"), ["no option `max_detections`"]),
        ("overlap", detector(nms_iou_threshold=0.0), ["option `nms_iou_threshold` is 0", "above 0, at most 1"]),
        ("large_overlap", detector(nms_iou_threshold=1.5), ["option `nms_iou_threshold` is 1.5"]),
        ("threshold", detector(nms_score_threshold=float("nan")), ["option `nms_score_threshold` is NaN", "a finite number"]),
        ("scale", detector(y_scale=0.0), ["option `y_scale` is 0", "more than zero"]),
        ("no_scale", detector(drop="w_scale"), ["no option `w_scale`"]),
        ("text", detector(y_scale="ten"), ["option `y_scale` has type 5", "a number"]),
        ("fraction", detector(num_classes=2.5), ["option `num_classes` is a float", "an integer"]),
    ]:
        odd(f"detections_{name}", file, error=error)
