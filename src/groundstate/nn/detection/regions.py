r"""Regions of a picture that may be objects: graph segmentation and selective search."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.ndimage
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.display import Displayed
from groundstate.errors import DataError, ShapeError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
COLOURS, STEPS = 25, 10  # bins of a channel's values, and of its slopes
TURNS = np.arange(8) * np.pi / 4


def felzenszwalb(image: Any, scale: float = 100.0, sigma: float = 0.8, min_size: int = 20) -> Ints:
    r"""Segments of a picture: its grid of pixels cut where edges are dear.

    Neighbouring pixels (eight of each) are joined by edges that cost the distance of their colours;
    cheapest first, an edge joins segments A and B where
    :math:`c < \min_{S\in\{A, B\}}\left(\max_{e\in S} c_e + k/|S|\right)`, k = ``scale``/255. Segments
    below ``min_size`` then join a neighbour (Felzenszwalb and Huttenlocher 2004).

    Parameters
    ----------
    image : ``(H, W)`` or ``(C, H, W)``, values from 0 to 1, or whole numbers from 0 to 255
    scale : larger means fewer and larger segments
    sigma : width of the Gaussian blur before
    min_size : pixels of the smallest segment

    Returns
    -------
    ``(H, W)`` whole numbers from 0, in the order in which segments are met row by row

    Examples
    --------
    >>> image = np.zeros((20, 20)); image[5:12, 4:10] = 1
    >>> segments = felzenszwalb(image, sigma=0)
    >>> np.bincount(segments.ravel())
    array([358,  42])
    """
    from groundstate.nn.detection.regions_numba import segment

    pixels = _pixels(image)
    if scale <= 0 or sigma < 0 or min_size < 1:
        raise ValueError(
            f"scale is positive, sigma at least 0 and min_size at least 1, got {scale}, {sigma} and "
            f"{min_size}"
        )
    if sigma:
        pixels = scipy.ndimage.gaussian_filter(pixels, (0, sigma, sigma))
    name = np.arange(pixels[0].size).reshape(pixels.shape[1:])
    every, before, after = slice(None), slice(None, -1), slice(1, None)
    steps = (
        ((every, after), (every, before)), ((after, every), (before, every)),
        ((after, after), (before, before)), ((before, after), (after, before)),
    )  # right, down and both diagonals  # fmt: skip
    first = np.concatenate([name[one].ravel() for one, _ in steps])
    second = np.concatenate([name[two].ravel() for _, two in steps])
    cost = np.concatenate(
        [np.sqrt(np.square(pixels[:, *one] - pixels[:, *two]).sum(0)).ravel() for one, two in steps]
    )
    order = np.argsort(cost, kind="stable")
    parent = name.ravel().copy()
    segment(first[order], second[order], cost[order], scale / 255, min_size, parent)
    return np.unique(parent, return_inverse=True)[1].reshape(name.shape)


@dataclass(frozen=True)
class Regions(Displayed):
    """What selective search found in a picture of n segments.

    Attributes
    ----------
    boxes : ``(m, 4)``, the distinct boxes, small regions before those they merge into
    regions : ``(2n-1, 4)``, the box of every region: segments, then what merging made; the last is
        the picture
    segments : ``(H, W)``, the segment of each pixel
    merges : ``(n-1, 2)``, the two regions that became region n, n+1, ...
    similarity : ``(n-1,)``, how similar they were
    """

    boxes: Floats = field(repr=False)
    regions: Floats = field(repr=False)
    segments: Ints = field(repr=False)
    merges: Ints = field(repr=False)
    similarity: Floats = field(repr=False)

    def labels(self, k: int) -> Ints:
        """The region of each pixel ``(H, W)`` when k regions are left.

        >>> image = np.zeros((20, 20)); image[5:12, 4:10] = 1; image[13:19, 13:19] = 0.5
        >>> [int(selective_search(image, sigma=0).labels(k).max()) for k in (3, 2, 1)]
        [2, 1, 0]
        """
        n = len(self.merges) + 1
        if not 1 <= k <= n:
            raise ValueError(f"k is from 1 to the {n} segments, got {k}")
        name = np.arange(2 * n - 1)
        for step in range(n - k - 1, -1, -1):  # parents before children
            name[self.merges[step]] = name[n + step]
        return np.unique(name[self.segments], return_inverse=True)[1].reshape(self.segments.shape)


def selective_search(
    image: Any, scale: float = 100.0, sigma: float = 0.8, min_size: int = 20
) -> Regions:
    r"""Boxes that may hold an object: those of all regions while similar neighbours merge into one.

    From the segments of :func:`felzenszwalb` the two neighbours merge for which

    .. math:: s(a, b) = \sum_f\min(h_{af}, h_{bf}) + \left(1 - \tfrac{|a|+|b|}{|I|}\right)
              + \left(1 - \tfrac{|\mathrm{box}_{ab}| - |a| - |b|}{|I|}\right)

    is largest: histograms h of colour (25 bins a channel) and of texture (slopes in 8 directions, 10
    bins), each of sum 1; small regions first; regions that fit into each other (Uijlings et al. 2013).

    Parameters
    ----------
    image, scale, sigma, min_size : as in :func:`felzenszwalb`

    Returns
    -------
    `Regions`; n segments give 2n − 1 boxes before duplicates are removed

    Examples
    --------
    >>> image = np.zeros((20, 20)); image[5:12, 4:10] = 1
    >>> selective_search(image, sigma=0).boxes
    array([[ 4.,  5., 10., 12.],
           [ 0.,  0., 20., 20.]])
    """
    from groundstate.nn.detection.regions_numba import merge

    pixels, segments = _pixels(image), felzenszwalb(image, scale, sigma, min_size)
    n = int(segments.max()) + 1
    size, box = np.zeros(2 * n - 1), np.zeros((2 * n - 1, 4))
    size[:n] = np.bincount(segments.ravel())
    for i, (rows, columns) in enumerate(scipy.ndimage.find_objects(segments + 1)):
        box[i] = columns.start, rows.start, columns.stop, rows.stop
    described = _histograms(pixels, segments, n)
    hist = np.zeros((2 * n - 1, described.shape[1]))
    hist[:n] = described
    beside = _neighbours(segments, n)
    merges, similarity = np.zeros((n - 1, 2), np.int64), np.zeros(n - 1)
    if n > 1:
        merge(beside[0].copy(), beside[1].copy(), hist, size, box, merges, similarity)
    last = len(box) - 1 - np.unique(box[::-1], axis=0, return_index=True)[1]  # of equal ones
    distinct = np.sort(last)
    return Regions(box[distinct], box, segments, merges, similarity)


def _pixels(image: Any) -> Floats:
    """Channels first, values from 0 to 1.  # (C, H, W)"""
    given = np.asarray(image.detach().cpu() if isinstance(image, Tensor) else image)
    pixels = given[None] if given.ndim == 2 else given
    if pixels.ndim != 3 or not pixels.size or len(pixels) > 4:
        raise ShapeError(
            f"a picture has shape (H, W) or (C, H, W) with at most 4 channels, got {given.shape}"
        )
    if not np.issubdtype(pixels.dtype, np.floating):
        return np.asarray(pixels / 255.0, np.float64)
    if not np.isfinite(pixels).all():
        raise DataError("the picture holds NaN or infinity; replace them first")
    return pixels.astype(np.float64)


def _histograms(pixels: Floats, segments: Ints, n: int) -> Floats:
    """Colour and texture of every segment, each half of sum 1.  # (n, C · (25 + 8 · 10))"""

    def counts(values: Floats, bins: int) -> Floats:
        low, high = values.min(), values.max()
        at = ((values - low) * (bins / (high - low) if high > low else 0.0)).astype(np.int64)
        at = segments * bins + np.minimum(at, bins - 1)
        return np.bincount(at.ravel(), minlength=n * bins).reshape(n, bins).astype(np.float64)

    colour, texture = [], []
    for channel in pixels:
        colour.append(counts(channel, COLOURS))
        down, across = (
            scipy.ndimage.gaussian_filter(channel, 1.0, order=o) for o in ((1, 0), (0, 1))
        )
        for turn in TURNS:
            slope = np.maximum(np.cos(turn) * across + np.sin(turn) * down, 0.0)
            texture.append(counts(slope, STEPS))
    parts = [np.concatenate(each, 1) for each in (colour, texture)]
    return np.concatenate([part / part.sum(1, keepdims=True) for part in parts], 1)


def _neighbours(segments: Ints, n: int) -> Ints:
    """Pairs of segments that share a side or a corner of a pixel.  # (2, E)"""
    pairs = [
        (segments[:, 1:], segments[:, :-1]), (segments[1:], segments[:-1]),
        (segments[1:, 1:], segments[:-1, :-1]), (segments[:-1, 1:], segments[1:, :-1]),
    ]  # fmt: skip
    a = np.concatenate([one.ravel() for one, _ in pairs])
    b = np.concatenate([two.ravel() for _, two in pairs])
    key = np.unique(np.minimum(a, b)[a != b] * n + np.maximum(a, b)[a != b])
    return np.stack([key // n, key % n])
