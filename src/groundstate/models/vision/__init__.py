"""Models of pictures, fixed filters and hand-made features."""

from groundstate.models.vision import filters
from groundstate.models.vision.hog import HOG
from groundstate.models.vision.morph import morph

__all__ = ["HOG", "filters", "morph"]
