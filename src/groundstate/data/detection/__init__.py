"""Pictures with boxes: files of COCO, Pascal VOC, YOLO and CSV, and lists in memory."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.data.detection.coco import read_coco as read_coco
    from groundstate.data.detection.lines import read_box_file as read_box_file
    from groundstate.data.detection.read import read_detection as read_detection
    from groundstate.data.detection.truths import DetectionSet as DetectionSet
    from groundstate.data.detection.truths import Truth as Truth
    from groundstate.data.detection.voc import read_voc as read_voc
    from groundstate.data.detection.yolo import read_yolo as read_yolo

lazy(__name__)
