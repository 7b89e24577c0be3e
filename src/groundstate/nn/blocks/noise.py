r"""Noise as a regulariser: on inputs, on weights and on labels, in training only.

Without a ``generator`` the noise comes from torch's own stream, which the trainer sets by seed and
step, so that a run is repeated and resumed to the same bits.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from groundstate.nn.blocks.contract import blocks, rows_of


@blocks.register(make=lambda: InputNoise(0.1), batch=rows_of(3), formula=r"x + \sigma\varepsilon")
class InputNoise(nn.Module):
    r"""Training: :math:`x + \sigma\varepsilon` with :math:`\varepsilon \sim N(0, I)`; evaluation: x.

    On linear least squares the expected loss is that of the clean inputs plus
    :math:`\sigma^2\|w\|^2`: an L2 penalty.

    Parameters
    ----------
    sigma : standard deviation of the noise
    generator : source of the noise; None is torch's own stream

    Examples
    --------
    >>> layer = InputNoise(0.5, generator=torch.Generator().manual_seed(0))
    >>> x = torch.zeros(2, 3)
    >>> torch.equal(layer(x), x), torch.equal(layer.eval()(x), x)
    (False, True)
    """

    def __init__(self, sigma: float = 0.1, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.sigma, self.generator = _nonnegative(sigma), generator

    def config(self) -> dict[str, Any]:
        return {"sigma": self.sigma}

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.sigma == 0:
            return x
        return x + self.sigma * _normal(x, self.generator)

    def extra_repr(self) -> str:
        return f"sigma={self.sigma}"


@blocks.register(
    make=lambda: WeightNoise(nn.Linear(3, 2), 0.1),
    batch=rows_of(3),
    formula=r"f(x; \theta + \sigma\varepsilon)",
)
class WeightNoise(nn.Module):
    r"""Training: :math:`f(x; \theta + \sigma\varepsilon)`; evaluation: :math:`f(x; \theta)`.

    The gradient is taken at the noisy weights and moves the clean ones, which favours flat minima.

    Parameters
    ----------
    module : the network
    sigma : standard deviation, in units of the root mean square of each weight if ``relative``
    relative : bool, default=False
    biases : bool, default=False
        Disturb parameters of one axis too.
    generator : source of the noise; None is torch's own stream

    Examples
    --------
    >>> layer = WeightNoise(nn.Linear(2, 1), 0.1)
    >>> x = torch.ones(1, 2)
    >>> torch.equal(layer(x), layer.module(x)), torch.equal(layer.eval()(x), layer.module(x))
    (False, True)
    """

    def __init__(
        self,
        module: nn.Module,
        sigma: float = 0.01,
        *,
        relative: bool = False,
        biases: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.module, self.sigma, self.generator = module, _nonnegative(sigma), generator
        self.relative, self.biases = relative, biases

    def config(self) -> dict[str, Any]:
        return {
            "module": self.module, "sigma": self.sigma, "relative": self.relative,
            "biases": self.biases,
        }  # fmt: skip

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if not self.training or self.sigma == 0:
            return self.module(*args, **kwargs)
        noisy = {
            name: p + self._scale(p) * _normal(p, self.generator)
            for name, p in self.module.named_parameters()
            if p.ndim > 1 or self.biases
        }
        return torch.func.functional_call(self.module, noisy, args, kwargs)

    def _scale(self, p: Tensor) -> Tensor | float:
        if not self.relative:
            return self.sigma
        return self.sigma * p.detach().square().mean().sqrt()

    def extra_repr(self) -> str:
        return f"sigma={self.sigma}, relative={self.relative}, biases={self.biases}"


class LabelNoise(nn.Module):
    r"""Training: a label is replaced with probability p by one of the other classes.

    Parameters
    ----------
    p : probability
    k : number of classes
    generator : source of the draws; None is torch's own stream

    Examples
    --------
    >>> y = torch.tensor([0, 1, 2])
    >>> noise = LabelNoise(1.0, 3, generator=torch.Generator().manual_seed(0))
    >>> bool((noise(y) != y).all()), torch.equal(noise.eval()(y), y)
    (True, True)
    """

    def __init__(self, p: float, k: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p must be a probability in [0, 1], got {p}")
        if k < 2:
            raise ValueError(f"labels can only change among k >= 2 classes, got k={k}")
        self.p, self.k, self.generator = p, k, generator

    def forward(self, y: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return y
        u = torch.rand(y.shape, generator=self.generator, device=y.device)
        jump = torch.randint(1, self.k, y.shape, generator=self.generator, device=y.device)
        known = (y >= 0) & (u < self.p)  # −1 marks a missing label
        return torch.where(known, (y + jump) % self.k, y)

    def extra_repr(self) -> str:
        return f"p={self.p}, k={self.k}"


def smooth_labels(y: Tensor, k: int, smoothing: float = 0.1) -> Tensor:
    r"""Soft targets :math:`(1-\epsilon)\,\mathbb 1_y + \epsilon/K`.

    Parameters
    ----------
    y : (B,) labels 0 to k-1
    k : number of classes
    smoothing : :math:`\epsilon`

    Returns
    -------
    Tensor (B, k), rows sum to 1

    Examples
    --------
    >>> smooth_labels(torch.tensor([2]), 4, 0.2)
    tensor([[0.0500, 0.0500, 0.8500, 0.0500]])
    """
    if not 0 <= smoothing <= 1:
        raise ValueError(f"smoothing must be in [0, 1], got {smoothing}")
    hot = functional.one_hot(y, k).to(torch.get_default_dtype())
    return hot * (1 - smoothing) + smoothing / k


def _nonnegative(sigma: float) -> float:
    if not sigma >= 0:
        raise ValueError(f"sigma must be a standard deviation, at least 0, got {sigma}")
    return float(sigma)


def _normal(x: Tensor, generator: torch.Generator | None) -> Tensor:
    return torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
