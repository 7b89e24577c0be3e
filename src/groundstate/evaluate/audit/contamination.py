r"""Test rows that the training set knows already: copies, near copies, shared text, same pictures."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy.fft
import scipy.spatial
from numpy.typing import NDArray

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key, RandomState
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.errors import DataError, ShapeError
from groundstate.evaluate.rows import columns
from groundstate.math.stats.interval import Interval
from groundstate.math.stats.means import mean_interval

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Kind = Literal["rows", "text", "images"]
_ROWS = 100_000  # training rows whose own distances set the limit
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Contamination(Displayed):
    """Which test rows stand in the training set.

    Attributes
    ----------
    exact, near : (n,) of bool
        Equal to a training row; closer to one than training rows are to each other (near holds
        exact too).
    match : (n,)
        The training row it resembles most, -1 for none.
    limit : float
        Distance (rows), shared n-grams (text) or differing bits (images) that counts as near.
    score, clean, difference : Interval or None
        Mean loss of all test rows, of those not near any training row, and of all minus clean,
        when losses were given.
    """

    exact: Mask = field(repr=False)
    near: Mask = field(repr=False)
    match: NDArray[np.intp] = field(repr=False)
    kind: str
    limit: float
    score: Interval | None = None
    clean: Interval | None = None
    difference: Interval | None = None

    @property
    def share(self) -> float:
        """Share of test rows that are near a training row."""
        return float(self.near.mean())

    def __str__(self) -> str:
        text = (
            f"{int(self.exact.sum())} of {len(self.exact)} test rows are copies of training rows, "
            f"{int(self.near.sum())} are near copies or copies"
        )
        if self.difference is not None:
            text += f"; loss {self.score}, without them {self.clean}, difference {self.difference}"
        return text


def contamination(
    train: Any,
    test: Any,
    kind: Kind = "rows",
    *,
    losses: Any = None,
    n_gram: int = 13,
    bits: int = 6,
    level: float = 0.95,
    random_state: Key | RandomState = 0,
) -> Contamination:
    """Look for test rows in the training set, and for what they do to the score.

    ======  =====================================================================================
    rows    equal content (hash); numeric tables also: closer to a training row than the nearest
            1 % of training rows are to each other, columns standardised
    text    a run of ``n_gram`` words (lower case, without punctuation) shared with a training
            text; shorter texts must be equal
    images  at most ``bits`` of the 64 bits of a perceptual hash differ
    ======  =====================================================================================

    Parameters
    ----------
    train, test : tables, lists of texts, or arrays of images ``(N, H, W[, C])``
    losses : ``(n,)`` losses of a model on the test rows

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> train, test = rng.normal(size=(500, 4)), rng.normal(size=(100, 4))
    >>> test[:5] = train[:5]
    >>> found = contamination(train, test)
    >>> int(found.exact.sum()), found.match[:5].tolist()
    (5, [0, 1, 2, 3, 4])
    """
    if kind == "rows":
        exact, near, match, limit = _by_rows(train, test, Key.of(random_state))
    elif kind == "text":
        exact, near, match, limit = _by_text(list(train), list(test), n_gram)
    elif kind == "images":
        exact, near, match, limit = _by_images(train, test, bits)
    else:
        raise ValueError(f"kind must be 'rows', 'text' or 'images', got {kind!r}")
    if losses is None:
        return Contamination(exact, near, match, kind, limit)
    values = np.asarray(losses, np.float64)
    if values.shape != near.shape:
        raise ShapeError(
            f"losses have shape {values.shape}; expected one per test row, {near.shape}"
        )
    if (~near).sum() < 2:
        raise DataError("fewer than two test rows are clean; there is nothing to compare with")
    score, clean = mean_interval(values, level), mean_interval(values[~near], level)
    return Contamination(exact, near, match, kind, limit, score, clean, _gap(values, near, level))


def _gap(losses: Floats, near: Mask, level: float) -> Interval:
    """All minus clean: a linear function of the rows, with the error of its influences."""
    n, clean = len(losses), ~near
    middle = float(losses[clean].mean())
    gap = float(losses.mean()) - middle
    influence = losses - losses.mean() - clean * (losses - middle) * (n / clean.sum())
    found = mean_interval(influence, level)
    half = (found.high - found.low) / 2
    return Interval(gap, gap - half, gap + half, level, "influence")


def _by_rows(train: Any, test: Any, key: Key) -> tuple[Mask, Mask, NDArray[np.intp], float]:
    a, b = row_hash(*columns(train)), row_hash(*columns(test))
    order = np.argsort(a, kind="stable")
    at = np.minimum(np.searchsorted(a[order], b), len(a) - 1)
    exact = a[order][at] == b
    match = np.where(exact, order[at], -1)
    near, limit = exact.copy(), 0.0
    first, second = _numbers(train), _numbers(test)
    if first is None or second is None or first.shape[1] != second.shape[1]:
        return exact, near, match, limit
    centre, scale = np.nanmean(first, 0), np.nanstd(first, 0)
    scale = np.where(scale > 0, scale, 1.0)
    first, second = (np.nan_to_num((v - centre) / scale) for v in (first, second))
    tree = scipy.spatial.cKDTree(first)
    some = np.arange(len(first))
    if len(first) > _ROWS:
        some = key.fold("rows").numpy().choice(len(first), _ROWS, replace=False)
    own = tree.query(first[some], 2)[0][:, 1]
    own = own[own > 0]  # copies within the training set say nothing about near copies
    limit = float(np.quantile(own, 0.01)) if len(own) else 0.0
    distance, nearest = tree.query(second)
    near |= (distance < limit) | (distance == 0)
    return exact, near, np.where(near & ~exact, nearest, match), limit


def _numbers(X: Any) -> Floats | None:
    """The table as numbers, or None where a column holds something else."""
    if hasattr(X, "columns"):
        import narwhals.stable.v1 as nw

        X = nw.from_native(X, eager_only=True).to_numpy()
    array = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    if array.dtype.kind not in "fiub":
        return None
    return array.reshape(len(array), -1).astype(np.float64)


def _by_text(
    train: list[str], test: list[str], n: int
) -> tuple[Mask, Mask, NDArray[np.intp], float]:
    whole: dict[tuple[str, ...], int] = {}
    grams: dict[tuple[str, ...], int] = {}
    for i, text in enumerate(train):
        words = tuple(_WORD.findall(text.lower()))
        whole.setdefault(words, i)
        for j in range(len(words) - n + 1):
            grams.setdefault(words[j : j + n], i)
    exact, near = np.zeros(len(test), bool), np.zeros(len(test), bool)
    match = np.full(len(test), -1, np.intp)
    for i, text in enumerate(test):
        words = tuple(_WORD.findall(text.lower()))
        if words in whole:
            exact[i] = near[i] = True
            match[i] = whole[words]
            continue
        for j in range(len(words) - n + 1):
            found = grams.get(words[j : j + n])
            if found is not None:
                near[i], match[i] = True, found
                break
    return exact, near, match, 1.0


def perceptual_hash(images: Any) -> NDArray[np.uint64]:
    """64 bits of each image: signs of its low cosine frequencies around their median.

    Brightness, contrast, size and small noise change few of them.

    Parameters
    ----------
    images : ``(N, H, W)`` or ``(N, H, W, C)``

    Examples
    --------
    >>> image = np.random.default_rng(0).random((1, 28, 28))
    >>> bool(perceptual_hash(image)[0] == perceptual_hash(0.5 * image + 3)[0])
    True
    """
    pixels = np.asarray(images, np.float64)
    pixels = pixels.mean(-1) if pixels.ndim == 4 else pixels
    if pixels.ndim != 3 or min(pixels.shape[1:]) < 8:
        raise ShapeError(f"images are (N, H, W[, C]) of 8 pixels or more, got {pixels.shape}")
    low = scipy.fft.dctn(pixels, axes=(1, 2), norm="ortho")[:, :8, :8].reshape(len(pixels), 64)
    signs = low > np.median(low[:, 1:], axis=1, keepdims=True)
    signs[:, 0] = False  # the mean brightness says nothing
    powers = np.uint64(1) << np.arange(64, dtype=np.uint64)
    return (signs * powers).sum(1, dtype=np.uint64)


def _by_images(train: Any, test: Any, bits: int) -> tuple[Mask, Mask, NDArray[np.intp], float]:
    a, b = perceptual_hash(train), perceptual_hash(test)
    shape = len(np.asarray(train)), len(np.asarray(test))
    first = row_hash(np.asarray(train).reshape(shape[0], -1))
    second = row_hash(np.asarray(test).reshape(shape[1], -1))
    exact = np.isin(second, first)
    near, match = np.zeros(shape[1], bool), np.full(shape[1], -1, np.intp)
    step = max(1, 2**24 // max(1, len(a)))
    for start in range(0, len(b), step):
        apart = np.bitwise_count(a[None] ^ b[start : start + step, None])  # (block, N)
        nearest = apart.argmin(1)
        hit = apart[np.arange(len(nearest)), nearest] <= bits
        near[start : start + step] = hit
        match[start : start + step] = np.where(hit, nearest, -1)
    return exact, near | exact, match, float(bits)
