r"""Fixed filters of images: edges, blur, Laplace, Butterworth; arrays ``(..., H, W)`` in and out."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from groundstate.errors import ShapeError
from groundstate.math.arrays import takes_arrays

MODES = {"reflect": "reflect", "nearest": "replicate", "constant": "constant", "wrap": "circular"}


def _correlated(image: Tensor, kernel: Tensor, mode: str) -> Tensor:
    """Correlation with a kernel ``(h, w)``; borders as named, or "valid"."""
    if image.ndim < 2:
        raise ShapeError(f"an image has at least two axes, got shape {tuple(image.shape)}")
    if mode not in (*MODES, "valid"):
        raise ValueError(f"mode is one of {', '.join((*MODES, 'valid'))}, got {mode!r}")
    x = image.reshape(-1, 1, *image.shape[-2:])
    h, w = kernel.shape
    if mode != "valid":
        pad = (w // 2, w // 2, h // 2, h // 2)
        # scipy's "reflect" repeats the border pixel, torch's does not
        x = _mirrored(x, pad) if mode == "reflect" else F.pad(x, pad, mode=MODES[mode])
    out = F.conv2d(x, kernel.to(x)[None, None])
    return out.reshape(*image.shape[:-2], *out.shape[-2:])


def _mirrored(x: Tensor, pad: tuple[int, int, int, int]) -> Tensor:
    left, right, top, bottom = pad
    for axis, before, after in ((3, left, right), (2, top, bottom)):
        n = x.shape[axis]
        place = torch.arange(-before, n + after, device=x.device) % (2 * n)
        x = x.index_select(axis, torch.where(place < n, place, 2 * n - 1 - place))
    return x


def _edges(image: Tensor, side: tuple[float, ...], axis: int, mode: str) -> Tensor:
    smooth, slope = torch.tensor(side), torch.tensor([1.0, 0.0, -1.0])
    if axis not in (-1, -2):
        raise ValueError(f"axis is -1 (edges along columns) or -2 (along rows), got {axis}")
    kernel = torch.outer(smooth, slope) if axis == -1 else torch.outer(slope, smooth)
    return _correlated(image, kernel, mode)


@takes_arrays("image")
def prewitt(image: Tensor, axis: int = -1, mode: str = "reflect") -> Tensor:
    r"""Edges: correlation with the rows (1, 0, −1), three times; bright to dark is positive.

    Parameters
    ----------
    image : ``(..., H, W)``
    axis : along which the change is measured, −1 or −2
    mode : of the border: "reflect", "nearest", "constant", "wrap", or "valid" without one

    Examples
    --------
    >>> import numpy as np
    >>> image = np.repeat([[10, 10, 10, 0, 0, 0]], 6, axis=0)
    >>> prewitt(image, mode="valid")[0]
    array([ 0., 30., 30.,  0.])
    """
    return _edges(image, (1.0, 1.0, 1.0), axis, mode)


@takes_arrays("image")
def sobel(image: Tensor, axis: int = -1, mode: str = "reflect") -> Tensor:
    r"""Edges as ``prewitt``, with the middle row counted twice.

    >>> sobel([[1.0, 0.0, 0.0]] * 3, mode="valid")
    array([[4.]])
    """
    return _edges(image, (1.0, 2.0, 1.0), axis, mode)


@takes_arrays("image")
def laplace(image: Tensor, mode: str = "reflect") -> Tensor:
    r"""The second differences :math:`\Delta I`, kernel [[0, 1, 0], [1, −4, 1], [0, 1, 0]].

    >>> laplace([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], mode="constant")[1]
    array([ 1., -4.,  1.])
    """
    kernel = torch.tensor([[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]])
    return _correlated(image, kernel, mode)


@takes_arrays("image")
def gaussian(
    image: Tensor, sigma: float = 1.0, truncate: float = 4.0, mode: str = "reflect"
) -> Tensor:
    r"""Blur with weights :math:`\propto e^{-r^2/2\sigma^2}`, cut at ``truncate`` standard deviations.

    >>> gaussian([[1.0, 1.0], [1.0, 1.0]]).round(6).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    if sigma <= 0:
        raise ValueError(f"sigma is positive, got {sigma}")
    radius = int(truncate * sigma + 0.5)
    r = torch.arange(-radius, radius + 1, dtype=image.dtype, device=image.device)
    line = torch.exp(-0.5 * (r / sigma).square())
    line = line / line.sum()
    return _correlated(_correlated(image, line[None], mode), line[:, None], mode)


@takes_arrays("image")
def butterworth(
    image: Tensor,
    cutoff: float = 0.05,
    order: float = 2.0,
    high_pass: bool = True,
    squared: bool = True,
    npad: int = 0,
) -> Tensor:
    r"""Keep slow or fast changes, :math:`H(f) = 1/(1+(\|f\|/c)^{2n})` of the Fourier transform.

    High-pass is :math:`1-H`, so that both add up to the image; ``squared=False`` takes the root of
    either. :math:`H(c) = \tfrac12`.

    Parameters
    ----------
    image : ``(..., H, W)``
    cutoff : c in cycles per sample, in (0, 0.5]
    order : n; larger is steeper
    high_pass : keep fast changes instead of slow ones
    squared : whether H itself is used, or its root
    npad : border of repeated pixels while the filter runs

    Examples
    --------
    >>> import numpy as np
    >>> image = np.random.default_rng(0).normal(size=(8, 8))
    >>> low, high = (butterworth(image, 0.1, high_pass=h) for h in (False, True))
    >>> bool(np.allclose(low + high, image))
    True
    """
    if not 0 < cutoff <= 0.5:
        raise ValueError(f"cutoff is in (0, 0.5] cycles per sample, got {cutoff}")
    if image.ndim < 2:
        raise ShapeError(f"an image has at least two axes, got shape {tuple(image.shape)}")
    x = image
    if npad:
        flat = x.reshape(-1, 1, *x.shape[-2:])
        x = F.pad(flat, (npad,) * 4, mode="replicate").reshape(
            *x.shape[:-2], x.shape[-2] + 2 * npad, x.shape[-1] + 2 * npad
        )
    h, w = x.shape[-2:]
    response = butterworth_response(h, w, cutoff, order, high_pass, squared).to(x)
    spectrum = torch.fft.rfftn(x, dim=(-2, -1)) * response
    out = torch.fft.irfftn(spectrum, s=(h, w), dim=(-2, -1))
    return out[..., npad : h - npad, npad : w - npad] if npad else out


def butterworth_response(
    h: int, w: int, cutoff: float, order: float = 2.0, high_pass: bool = True, squared: bool = True
) -> Tensor:
    """H of ``butterworth`` on the half plane of ``torch.fft.rfftn``, ``(h, w // 2 + 1)``.

    >>> float(butterworth_response(1, 20, 0.25)[0, 5])
    0.5
    """
    rows = torch.fft.fftfreq(h, dtype=torch.float64)[:, None]
    columns = torch.fft.rfftfreq(w, dtype=torch.float64)
    power = (torch.hypot(rows, columns) / cutoff) ** (2 * order)
    low = 1 / (1 + power)
    H = power / (1 + power) if high_pass else low
    return H if squared else torch.sqrt(H)
