r"""From one image to another: landmarks move, pixels follow piece by piece, colours dissolve."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import Delaunay
from torch import Tensor
from torch.nn.functional import grid_sample

from groundstate.errors import ShapeError
from groundstate.math.arrays import takes_arrays


@takes_arrays("img0", "img1")
def morph(img0: Tensor, img1: Tensor, pts0: Any, pts1: Any, t: float) -> Tensor:
    r"""The picture at time t between two: :math:`(1-t)I_0\circ w_0 + tI_1\circ w_1`.

    Landmarks stand at :math:`p_t = (1-t)p_0 + tp_1`; between them both images are warped by the
    affine maps of the triangles (Delaunay, of the landmarks halfway). The corners are landmarks too.

    Parameters
    ----------
    img0, img1 : ``(H, W)`` or ``(C, H, W)``, the same shape
    pts0, pts1 : landmarks ``(n, 2)`` as (x, y) in pixels, row for row the same feature
    t : 0 gives the first image, 1 the second

    Examples
    --------
    >>> a, b = np.eye(4), np.ones((4, 4))
    >>> bool(np.allclose(morph(a, b, [[1, 1]], [[2, 2]], 0.0), a))
    True
    """
    if img0.shape != img1.shape or img0.ndim not in (2, 3):
        raise ShapeError(
            f"morph takes two images (H, W) or (C, H, W) of one shape, got {tuple(img0.shape)} and "
            f"{tuple(img1.shape)}"
        )
    if not 0 <= t <= 1:
        raise ValueError(f"t is in [0, 1], got {t}")
    h, w = img0.shape[-2:]
    p0, p1 = _landmarks(pts0, pts1, h, w)
    triangles = Delaunay((p0 + p1) / 2)
    now = (1 - t) * p0 + t * p1
    first, second = (_warped(img, now, p, triangles) for img, p in ((img0, p0), (img1, p1)))
    return (1 - t) * first + t * second


def _landmarks(
    pts0: Any, pts1: Any, h: int, w: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    a, b = (np.asarray(p, dtype=np.float64).reshape(-1, 2) for p in (pts0, pts1))
    if a.shape != b.shape:
        raise ShapeError(f"landmarks come in pairs, got {len(a)} and {len(b)}")
    size = np.array([w - 1, h - 1])
    if any((p < 0).any() or (p > size).any() or not np.isfinite(p).all() for p in (a, b)):
        raise ValueError(f"landmarks are pixels of the image, x in [0, {w - 1}], y in [0, {h - 1}]")
    corners = np.array([[0, 0], [w - 1, 0], [0, h - 1], [w - 1, h - 1]], dtype=np.float64)
    keep = ~(corners[:, None] == a).all(-1).any(1)
    return np.concatenate([a, corners[keep]]), np.concatenate([b, corners[keep]])


def _warped(
    img: Tensor, now: NDArray[np.float64], source: NDArray[np.float64], triangles: Delaunay
) -> Tensor:
    """The image whose landmarks ``source`` have moved to ``now``."""
    h, w = img.shape[-2:]
    corners = triangles.simplices  # (m, 3)
    y, x = np.mgrid[:h, :w].astype(np.float64)
    pixels = np.stack([x.ravel(), y.ravel()], 1)
    at = source[corners[0]].mean(0) + 0 * pixels
    best = np.full(len(pixels), -np.inf)
    for corner in corners:  # barycentric coordinates in every triangle; the one that holds a pixel
        frame = np.vstack([now[corner].T, np.ones(3)])
        if abs(np.linalg.det(frame)) < 1e-12:
            continue
        weight = np.linalg.solve(frame, np.vstack([pixels.T, np.ones(len(pixels))]))  # (3, hw)
        inside = weight.min(0)
        better = inside > best
        at[better] = (source[corner].T @ weight).T[better]
        best = np.maximum(best, inside)
    scale = np.array([max(w - 1, 1), max(h - 1, 1)])
    grid = torch.as_tensor(2 * at / scale - 1).to(img).reshape(1, h, w, 2)
    flat = img.reshape(1, -1, h, w)
    out = grid_sample(flat, grid, mode="bilinear", padding_mode="border", align_corners=True)
    return out.reshape(img.shape)
