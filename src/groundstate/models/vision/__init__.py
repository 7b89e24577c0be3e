"""Models of pictures, boxes and regions, fixed filters and hand-made features."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.models.vision import augment as augment
    from groundstate.models.vision import filters as filters
    from groundstate.models.vision.hog import HOG as HOG
    from groundstate.models.vision.morph import morph as morph
    from groundstate.nn.detection import boxes as boxes
    from groundstate.nn.detection.regions import felzenszwalb as felzenszwalb
    from groundstate.nn.detection.regions import selective_search as selective_search
    from groundstate.nn.detection.roi import crop_resize as crop_resize
    from groundstate.nn.detection.roi import roi_align as roi_align
    from groundstate.nn.detection.roi import roi_pool as roi_pool

lazy(__name__)
