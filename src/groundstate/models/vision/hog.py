r"""Histograms of oriented gradients: the hand-made features that learned ones are compared with."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from groundstate.errors import DataError, ShapeError


class HOG(TransformerMixin, BaseEstimator):
    r"""Histograms of oriented gradients, :math:`h_{ck} = \frac1{|c|}\sum_{p\in c:\,\angle p\in k}|\nabla I_p|`,
    of every cell c and bin k, in overlapping blocks of cells that are scaled to unit length, clipped
    at 0.2 and scaled again (L2-Hys).

    Nothing is learned. A linear classifier on these features was the standard before convolutional
    networks. SIFT and SURF key points are found in scikit-image and OpenCV.

    Parameters
    ----------
    orientations : int
        Bins of the half circle.
    pixels_per_cell : int
        Side of a cell; what does not fill a cell at the right and lower border is left out.
    cells_per_block : int
        Side of a block in cells.

    Attributes
    ----------
    image_shape_ : tuple
        (channels, height, width) of the images seen in ``fit``.

    Examples
    --------
    >>> images = np.zeros((2, 32, 32))
    >>> HOG().fit_transform(images).shape  # 2 × 2 blocks of 3 × 3 cells with 9 bins
    (2, 324)
    """

    outside: ClassVar[str] = "a fixed formula of the pixels, with nothing to learn but their shape"

    def __init__(
        self, orientations: int = 9, pixels_per_cell: int = 8, cells_per_block: int = 3
    ) -> None:
        self.orientations = orientations
        self.pixels_per_cell = pixels_per_cell
        self.cells_per_block = cells_per_block

    def fit(self, X: Any, y: Any = None) -> Self:
        """Remember the shape of the images ``(n, H, W)`` or ``(n, C, H, W)``."""
        self.image_shape_ = self._images(X).shape[1:]
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Features ``(n, blocks · cells² · orientations)``."""
        from groundstate.models.vision.hog_numba import blocks, cells

        check_is_fitted(self, "image_shape_")
        images = self._images(X)
        if images.shape[1:] != self.image_shape_:
            raise ShapeError(
                f"HOG was fitted to images of shape {self.image_shape_}, got {images.shape[1:]}"
            )
        rows, columns = self._cells(images.shape[1:])
        b, n = self.cells_per_block, self.orientations
        out = np.zeros((len(images), (rows - b + 1) * (columns - b + 1) * b * b * n))
        for image, features in zip(images, out):
            counts = np.zeros((rows, columns, n))
            cells(image, self.pixels_per_cell, counts)
            blocks(counts, b, features)
        return out

    def _cells(self, shape: tuple[int, ...]) -> tuple[int, int]:
        rows, columns = (side // self.pixels_per_cell for side in shape[1:])
        if min(rows, columns) < self.cells_per_block:
            raise ShapeError(
                f"images of {shape[1]}×{shape[2]} pixels have {rows}×{columns} cells of "
                f"{self.pixels_per_cell}, fewer than a block of {self.cells_per_block}; use smaller "
                "pixels_per_cell or cells_per_block"
            )
        return rows, columns

    def _images(self, X: Any) -> NDArray[np.float64]:
        settings = (self.orientations, self.pixels_per_cell, self.cells_per_block)
        if any(not isinstance(v, int | np.integer) or v < 1 for v in settings):
            raise ValueError(
                f"orientations, pixels_per_cell and cells_per_block are positive integers, got "
                f"{settings}"
            )
        images = np.ascontiguousarray(X, dtype=np.float64)
        if images.ndim == 3:
            images = images[:, None]
        if images.ndim != 4 or not len(images):
            raise ShapeError(f"HOG takes images (n, H, W) or (n, C, H, W), got {images.shape}")
        if not np.isfinite(images).all():
            raise DataError("images hold NaN or infinity; replace or drop such images")
        self._cells(images.shape[1:])
        return images
