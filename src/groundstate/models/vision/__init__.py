"""Models of pictures, boxes and regions, fixed filters and hand-made features."""

from groundstate.models.vision import augment, filters
from groundstate.models.vision.hog import HOG
from groundstate.models.vision.morph import morph
from groundstate.nn.detection import boxes
from groundstate.nn.detection.regions import felzenszwalb, selective_search
from groundstate.nn.detection.roi import crop_resize, roi_align, roi_pool

__all__ = [
    "HOG", "augment", "boxes", "crop_resize", "felzenszwalb", "filters", "morph", "roi_align",
    "roi_pool", "selective_search",
]  # fmt: skip
