r"""Pictures pixel by pixel, :math:`e(x) = -\sum_i\log p(x_i\mid x_{<i}, y)` in raster order."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.sequences.autoregressive import Autoregressive
from groundstate.energy.spaces import Finite, Real, Sequence
from groundstate.errors import Unsupported
from groundstate.math.distributions.operations import fresh
from groundstate.nn.columns.heads import _categorical
from groundstate.nn.conv.masked import PixelNet

OUTPUTS = ("softmax", "logistic")


@registered(
    r"e(x) = -\sum_i \log p(x_i \mid x_{<i}),\ \text{pixels}",
    lambda: PixelChainEnergy((1, 2, 2), 3, 4, 1),
)
class PixelChainEnergy(Autoregressive, Energy):
    r"""A picture as a product of distributions of its pixels, row by row, red before green before blue:
    :math:`e(x) = -\sum_i\log p(x_i\mid x_1, \dots, x_{i-1}, y)`.

    Masked convolutions give all factors in one pass. A draw keeps what it has computed, so that all
    pixels together cost one pass too.

    Parameters
    ----------
    shape : (C, H, W); a row is a flat picture of ``C*H*W`` whole numbers
    levels : values 0 to L − 1 of a pixel
    features, layers, kernel, first : of ``groundstate.nn.conv.masked.PixelNet``
    output : "softmax", L logits; or "logistic", a mixture of logistic distributions whose mass between
        :math:`v - \tfrac12` and :math:`v + \tfrac12` is the probability of v
    components : of that mixture
    context : size of the vector y that is given; 0 is none
    generator : source of the initial weights

    Examples
    --------
    >>> e = PixelChainEnergy((1, 2, 2), 2, 4, 1)
    >>> every = e.spaces["x"].enumerate()
    >>> round(e.log_prob(every).exp().sum().item(), 5)
    1.0
    >>> e.sample(3).shape
    torch.Size([3, 4])
    """

    normalised = frozenset({"x"})
    variable = "x"

    def __init__(
        self,
        shape: Seq[int],
        levels: int,
        features: int = 32,
        layers: int = 4,
        kernel: int = 3,
        first: int = 5,
        output: str = "softmax",
        components: int = 5,
        context: int = 0,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        c, height, width = (int(n) for n in shape)
        d = c * height * width
        given = {"y": Real(context)} if context else {}
        super().__init__(x=Sequence(Finite(levels), d), **given)
        if output not in OUTPUTS:
            raise ValueError(f"output must be one of {', '.join(OUTPUTS)}, got {output!r}")
        self.shape, self.levels = (c, height, width), levels
        self.output, self.components, self.size = output, components, context
        self.settings = {
            "features": features, "layers": layers, "kernel": kernel, "first": first,
        }  # fmt: skip
        # pixel by pixel, and the channels of each one after the other
        place = torch.arange(d).reshape(c, height, width).permute(1, 2, 0).reshape(-1)
        self.order = tuple(place.tolist())
        size = levels if output == "softmax" else 3 * components
        self.net = PixelNet(self.shape, size, **self.settings, context=context, generator=generator)

    def config(self) -> dict[str, Any]:
        return {
            "shape": list(self.shape), "levels": self.levels, **self.settings,
            "output": self.output, "components": self.components, "context": self.size,
        }  # fmt: skip

    def _levels(self, x: Tensor) -> Tensor:
        """Whole numbers; what lies outside is the nearest one."""
        whole = x.detach().round().long() if x.is_floating_point() else x
        return whole.clamp(0, self.levels - 1)

    def _scaled(self, x: Tensor) -> Tensor:
        """Values in [-1, 1], in which the network and the mixtures work."""
        return 2 * x.to(self.placement()[1]) / max(1, self.levels - 1) - 1

    def log_probs(self, out: Tensor) -> Tensor:
        """Log-probabilities ``(B, L, ...)`` of all values from outputs ``(B, size, ...)``."""
        if self.output == "softmax":
            return functional.log_softmax(out, 1)
        mu, raw, logits = out.chunk(3, 1)
        L = self.levels
        edges = (2 * torch.arange(1, L, device=out.device, dtype=out.dtype) - 1) / max(1, L - 1) - 1
        edges = edges.reshape(1, 1, -1, *(1,) * (out.ndim - 2))  # between v - 1 and v
        z = (edges - mu.unsqueeze(2)) * torch.exp(-raw.clamp(min=-7.0)).unsqueeze(2)
        below = functional.pad(torch.sigmoid(z), (0, 0) * (out.ndim - 2) + (1, 0), value=0.0)
        above = functional.pad(torch.sigmoid(-z), (0, 0) * (out.ndim - 2) + (0, 1), value=0.0)
        # of the difference of two numbers near one, that of their complements has more digits
        upper = functional.pad(torch.sigmoid(z), (0, 0) * (out.ndim - 2) + (0, 1), value=1.0)
        lower = functional.pad(torch.sigmoid(-z), (0, 0) * (out.ndim - 2) + (1, 0), value=1.0)
        mass = torch.where(below > 0.5, lower - above, upper - below)
        log_mass = mass.clamp_min(torch.finfo(out.dtype).tiny).log()
        return torch.logsumexp(functional.log_softmax(logits, 1).unsqueeze(2) + log_mass, 1)

    def factors(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Log-probabilities of every pixel and channel given those before, ``(B, C*H*W)``."""
        value = self._levels(x)
        picture = self._scaled(value).reshape(-1, *self.shape)
        log_p = self.log_probs(self.net(picture, y))  # (B, L, C, H, W)
        return log_p.gather(1, value.reshape(-1, 1, *self.shape)).flatten(1)

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        return -self.factors(x, y).sum(1)

    @torch.no_grad()
    def start_at(self, x: Tensor, weight: Tensor | None = None) -> None:
        """Start with the shares of the values among all pixels of these rows."""
        if self.output != "softmax":
            return
        w = x.new_ones(len(x)) if weight is None else weight.to(x)
        each = w[:, None].expand_as(x).reshape(-1)
        at = self._levels(x).reshape(-1)
        counts = x.new_zeros(self.levels).index_add_(0, at, each)
        share = ((counts + 1) / (counts.sum() + self.levels)).log()
        self.net.start_at((share * 2**12).round() / 2**12)

    def ancestral(
        self,
        n: int,
        *,
        T: float = 1.0,
        generator: torch.Generator | None = None,
        y: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """Independent draws, pixel by pixel, ``(n, C*H*W)``; exact at T = 1."""
        device = self.placement()[0]
        x = torch.zeros(n, len(self.order), device=device, dtype=torch.int64)
        free = torch.ones_like(x, dtype=torch.bool)
        return {"x": self.complete(x, free, y, T=T, generator=generator)[0]}

    @torch.no_grad()
    def complete(
        self,
        x: Tensor,
        free: Tensor,
        y: Tensor | None = None,
        *,
        T: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Draw the free pixels ``(B, C*H*W)`` in raster order, each given all that stand before it.

        Returns
        -------
        rows like x, and the log-probability ``(B,)`` of their known pixels given what stands before
        them: the weight of a row as a draw given all known pixels
        """
        generator = fresh(generator)
        c, height, width = self.shape
        steps = self.net.stepper(len(x), y)
        value = self._levels(x).reshape(-1, c, height, width).clone()
        open_ = free.reshape(value.shape)
        some, every = open_.any(0).tolist(), open_.all(0).tolist()
        log_w = torch.zeros(len(x), device=x.device, dtype=self.placement()[1])
        pixel = torch.zeros(len(x), c, device=x.device, dtype=log_w.dtype)
        for i in range(height):
            for j in range(width):
                for k in range(c):
                    if k:
                        steps.put(i, j, pixel)
                    log_p = self.log_probs(steps.at(i, j))[:, :, k]  # (B, L)
                    if some[k][i][j]:
                        drawn = _categorical(log_p / T, generator)
                        value[:, k, i, j] = torch.where(open_[:, k, i, j], drawn, value[:, k, i, j])
                    own = value[:, k, i, j]
                    if not every[k][i][j]:
                        known = log_p.gather(1, own[:, None])[:, 0]
                        log_w += torch.where(open_[:, k, i, j], 0.0, known)
                    pixel[:, k] = self._scaled(own)
                steps.put(i, j, pixel)
        return value.reshape(len(x), -1).to(x.dtype), log_w

    def conditional(self, prefix: Tensor, **given: Any) -> Any:
        raise Unsupported("a prefix of pixels is completed with complete(x, free)")
