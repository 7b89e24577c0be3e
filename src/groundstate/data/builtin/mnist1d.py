"""MNIST-1D: ten one-dimensional digits that only models with the right prior learn easily."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STROKES = (
    (5, 6, 6.5, 6.75, 7, 7, 7, 7, 6.75, 6.5, 6, 5),
    (5, 3, 3, 3.4, 3.8, 4.2, 4.6, 5, 5.4, 5.8, 5, 5),
    (5, 6, 6.5, 6.5, 6, 5.25, 4.75, 4, 3.5, 3.5, 4, 5),
    (5, 6, 6.5, 6.5, 6, 5, 5, 6, 6.5, 6.5, 6, 5),
    (5, 4.4, 3.8, 3.2, 2.6, 2.6, 5, 5, 5, 5, 5, 5),
    (5, 3, 3, 3, 3, 5, 6, 6.5, 6.5, 6, 4.5, 5),
    (5, 4, 3.5, 3.25, 3, 3, 3, 3, 3.25, 3.5, 4, 5),
    (5, 7, 7, 6.6, 6.2, 5.8, 5.4, 5, 4.6, 4.2, 5, 5),
    (5, 4, 3.5, 3.5, 4, 5, 5, 4, 3.5, 3.5, 4, 5),
    (5, 4, 3.5, 3.5, 4, 5, 5, 5, 5, 4.7, 4.3, 5),
)


class Digits1D(NamedTuple):
    """Training and test rows of ``mnist1d``."""

    X_train: Floats
    y_train: NDArray[np.int64]
    X_test: Floats
    y_test: NDArray[np.int64]


def templates() -> Floats:
    """The ten strokes before they are bent, each starting and ending at zero, ``(10, 12)``."""
    x = np.array(STROKES, dtype=np.float64)
    x -= x.mean(1, keepdims=True)
    x /= x.std(1, keepdims=True)
    return (x - x[:, :1]) / 6.0


def mnist1d(
    n_samples: int = 5000,
    *,
    train_share: float = 0.8,
    padding: tuple[int, int] = (36, 60),
    scale: float = 0.4,
    max_translation: int = 48,
    correlated_noise: float = 0.25,
    noise: float = 0.02,
    shear: float = 0.75,
    length: int = 40,
    shuffle: bool = False,
    seed: int = 42,
) -> Digits1D:
    r"""Draw signals of ten digits: padded, dilated, scaled, translated, noisy, sheared.

    Settings and draws are those of the ``mnist1d`` package (S. Greydanus, 2020): with the defaults
    the rows are the same. The signals are centred and divided by one standard deviation for all.

    Parameters
    ----------
    n_samples : rows, a tenth per digit
    train_share : share of the rows to learn from
    padding : least and most zeros after a stroke
    scale : width of the random factor around 1
    max_translation : steps of the cyclic shift, excluded
    correlated_noise, noise : of the flat part, smoothed over two steps, and of every step
    shear : width of the random slope
    length : numbers per row
    shuffle : put the columns in one random order, which takes their neighbourhood away
    seed : of everything

    Returns
    -------
    Digits1D : ``X_train (4000, 40)``, ``y_train``, ``X_test (1000, 40)``, ``y_test``

    Examples
    --------
    >>> data = mnist1d(200)
    >>> data.X_train.shape, data.X_test.shape, sorted(set(data.y_train.tolist())) == list(range(10))
    ((160, 40), (40, 40), True)
    """
    from scipy.ndimage import gaussian_filter

    if n_samples < 20 or not 0 < train_share < 1:
        raise ValueError(
            f"mnist1d needs n_samples >= 20 and 0 < train_share < 1, got {n_samples}, {train_share}"
        )
    draw = np.random.RandomState(seed)  # the stream of the original, kept for the same rows
    strokes, long = templates(), len(STROKES[0]) + padding[1]
    rows, labels = [], []
    for digit, stroke in enumerate(strokes):
        for _ in range(n_samples // len(strokes)):
            zeros = padding[0] + int(draw.rand() * (padding[1] - padding[0] + 1))
            x = _resampled(np.concatenate([stroke + 1e-8, np.zeros(zeros)]), long)
            x *= 1 + scale * (draw.rand() - 0.5)
            x = np.roll(x, draw.choice(max_translation))
            flat = gaussian_filter(correlated_noise * draw.randn(long), 2)
            x = np.where(x != 0, x, flat) + noise * draw.randn(long)
            x = x - shear * (draw.rand() - 0.5) * np.linspace(-0.5, 0.5, long)
            rows.append(_resampled(x, length))
            labels.append(digit)
    order = draw.permutation(len(labels))
    X, y = np.stack(rows)[order], np.array(labels, dtype=np.int64)[order]
    if shuffle:
        X = X[:, draw.permutation(length)]
    X = (X - X.mean()) / X.std()
    cut = int(len(y) * train_share)
    return Digits1D(X[:cut], y[:cut], X[cut:], y[cut:])


def _resampled(x: Floats, n: int) -> Floats:
    """x at n evenly spaced places, linear in between."""
    return np.interp(np.linspace(0, 1, n), np.linspace(0, 1, len(x)), x)
