r"""Columns of a table by one masked network, :math:`e(x) = -\sum_i\log p(x_i\mid x_{\pi(<i)})`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Binary, Levels, Real
from groundstate.errors import Unsupported
from groundstate.math.distributions.operations import fresh
from groundstate.nn.flows.masked import MaskedMLP

FLOOR = 1e-3  # least standard deviation of a real column
LOG_2PI = math.log(2 * math.pi)


def _example() -> MaskedDensityEnergy:
    return MaskedDensityEnergy((2, 2, 2), 1, (6,), "tanh", zero=False)


@registered(r"e(x) = -\sum_i \log p(x_i \mid x_{\pi(<i)})", _example)
class MaskedDensityEnergy(Energy):
    r"""MADE: :math:`e(x, y) = -\sum_i\log p(x_{\pi(i)}\mid x_{\pi(1)},\dots,x_{\pi(i-1)}, y)`, where one masked
    network gives all factors in one pass.

    A real column is a Gaussian, or a mixture of several; a column of levels has a probability for each.
    Every factor is normalised, so the whole is.

    Parameters
    ----------
    levels : of each column its number of levels, 0 for a real one
    components : Gaussians of a real column
    hidden_layer_sizes, activation : of the network
    context : q, numbers y that all factors depend on; 0 has no variable y
    order : π, by default 0, 1, 2, ...
    order_agnostic : learn with a new random order in every step; the density is then the mean over
        ``n_orders`` fixed ones, and any order can be asked for
    n_orders : of the mean
    zero : whether the last layer starts at zero
    generator : source of the initial weights

    Attributes
    ----------
    net : MaskedMLP
    orders : list of the orders whose mean the density is

    Examples
    --------
    >>> e = MaskedDensityEnergy((2, 2, 2), zero=False)
    >>> bits = e.spaces["x"].enumerate()
    >>> round(torch.exp(-e(x=bits)).sum().item(), 5)
    1.0
    """

    normalised = frozenset({"x"})
    calls: Tensor

    def __init__(
        self,
        levels: Sequence[int],
        components: int = 1,
        hidden_layer_sizes: Sequence[int] = (64, 64),
        activation: str = "relu",
        context: int = 0,
        order: Sequence[int] | None = None,
        order_agnostic: bool = False,
        n_orders: int = 8,
        zero: bool = True,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        levels = tuple(int(k) for k in levels)
        d = len(levels)
        if not d or any(k < 0 or k == 1 for k in levels):
            raise ValueError(
                f"levels are 0 for a real column or at least 2, one for each column; got {levels}"
            )
        if all(k == 2 for k in levels):
            space: Any = Binary(d)
        else:
            space = Levels(levels) if any(levels) else Real(d)
        super().__init__(**({"x": space} | ({"y": Real(context)} if context else {})))
        self.levels = levels
        self.components, self.context_size, self.zero = components, context, zero
        self.order_agnostic, self.n_orders = order_agnostic, n_orders
        real = 2 if components == 1 else 3 * components
        sizes = [real if k == 0 else 1 if k == 2 else k for k in self.levels]
        self.net = MaskedMLP(
            d, sizes, hidden_layer_sizes, activation, context, order,
            [k if k > 2 else 1 for k in self.levels], zero, generator=generator,
        )  # fmt: skip
        if components > 1:
            self._spread(generator)
        if order_agnostic:
            self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.orders = (
            [self._random(i) for i in range(n_orders)] if order_agnostic else [self.net.order]
        )

    @torch.no_grad()
    def _spread(self, generator: torch.Generator | None) -> None:
        """Components that start at different places."""
        bias: Tensor = self.net.layers[-1].bias  # type: ignore[assignment]
        places = torch.linspace(-1.5, 1.5, self.components).to(bias)
        for k, rows in zip(self.levels, self.net.rows, strict=True):
            if not k and not bias.is_meta:
                bias[rows].view(3, -1)[1] = places

    def _random(self, seed: int) -> tuple[int, ...]:
        g = torch.Generator(device="cpu").manual_seed(seed)
        return tuple(torch.randperm(len(self.levels), generator=g, device="cpu").tolist())

    def config(self) -> dict[str, Any]:
        net = self.net
        return {
            "levels": list(self.levels), "components": self.components,
            "hidden_layer_sizes": list(net.hidden_layer_sizes), "activation": net.activation,
            "context": self.context_size, "order": list(net.order),
            "order_agnostic": self.order_agnostic, "n_orders": self.n_orders, "zero": self.zero,
        }  # fmt: skip

    # --- density -------------------------------------------------------------------------

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        context = self._context(x, y)
        if not self.order_agnostic:
            return -self.log_factors(x, context).sum(-1)
        if self.training:
            self.calls += 1
            order = self._random(self.n_orders + int(self.calls))
            return -self.log_factors(x, context, order).sum(-1)
        each = [self.log_factors(x, context, order).sum(-1) for order in self.orders]
        return math.log(len(each)) - torch.logsumexp(torch.stack(each), 0)

    def log_factors(
        self, x: Tensor, context: Tensor | None = None, order: Sequence[int] | None = None
    ) -> Tensor:
        """Logarithms of the factors, ``(B, d)``, those of column i in place i."""
        out = self.net(self._inputs(x), context, order)
        parts = [self._log(i, x[:, i], out[:, rows]) for i, rows in enumerate(self.net.rows)]
        return torch.stack(parts, -1)

    def _context(self, x: Tensor, y: Tensor | None) -> Tensor | None:
        # zeros are an unknown label
        return x.new_zeros(len(x), self.context_size) if y is None and self.context_size else y

    def _inputs(self, x: Tensor) -> Tensor:
        if all(k <= 2 for k in self.levels):
            return x
        return torch.cat([self._input(i, x[:, i]) for i in range(len(self.levels))], -1)

    def _input(self, i: int, v: Tensor) -> Tensor:
        k = self.levels[i]
        if k <= 2:
            return v[:, None]
        return functional.one_hot(v.long().clamp(0, k - 1), k).to(v.dtype)

    def _mixture(self, out: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Log-weights, means and standard deviations of a real column, ``(B, K)`` each."""
        if self.components == 1:
            return torch.zeros_like(out[:, :1]), out[:, :1], _scale(out[:, 1:])
        logits, mean, raw = out.chunk(3, -1)
        return torch.log_softmax(logits, -1), mean, _scale(raw)

    def _log(self, i: int, v: Tensor, out: Tensor) -> Tensor:
        """Log-probability or density ``(B,)`` of values of column i from its outputs ``(B, size)``."""
        k = self.levels[i]
        if k:
            logits = torch.stack((-out[:, 0], out[:, 0]), -1) / 2 if k == 2 else out
            index = v.long().clamp(0, k - 1)
            found = torch.log_softmax(logits, -1).gather(1, index[:, None])[:, 0]
            return torch.where(index == v, found, -math.inf)  # what is no level is impossible
        logw, mean, std = self._mixture(out)
        each = logw - 0.5 * ((v[:, None] - mean) / std).square() - std.log() - 0.5 * LOG_2PI
        return each[:, 0] if self.components == 1 else torch.logsumexp(each, -1)

    # --- draws ---------------------------------------------------------------------------

    def _one(self, i: int, out: Tensor, T: float, generator: torch.Generator) -> Tensor:
        """Draws ``(B,)`` of column i; logits are divided by T, variances multiplied."""
        k = self.levels[i]
        if k:
            logits = torch.cat((torch.zeros_like(out), out), 1) if k == 2 else out
            p = torch.softmax(logits / T, -1)
            return torch.multinomial(p, 1, generator=generator)[:, 0].to(out.dtype)
        logw, mean, std = self._mixture(out)
        which = torch.zeros(len(out), 1, dtype=torch.int64, device=out.device)
        if self.components > 1:
            which = torch.multinomial(torch.softmax(logw / T, -1), 1, generator=generator)
        noise = torch.randn(len(out), 1, generator=generator, device=out.device, dtype=out.dtype)
        return (mean.gather(1, which) + math.sqrt(T) * std.gather(1, which) * noise)[:, 0]

    @torch.no_grad()
    def complete(
        self,
        x: Tensor,
        unknown: Tensor,
        y: Tensor | None = None,
        T: float = 1.0,
        generator: torch.Generator | None = None,
        order: Sequence[int] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Draw unknown cells column by column, each from its factor given what stands before it.

        Returns
        -------
        rows ``(B, d)``, and ``(B,)`` the logarithm of what known cells have given what was drawn before
        them: the weight of a draw for the distribution given all known cells; the same for all where the
        known cells stand first in the order
        """
        generator = fresh(generator)
        steps = self.net.stepper(len(x), self._context(x, y), order)
        rows, weight, value = x.clone(), x.new_zeros(len(x)), None
        for i in steps.order:
            out = steps.next(value)
            drawn = self._one(i, out, T, generator)
            rows[:, i] = torch.where(unknown[:, i], drawn, x[:, i])
            known = self._log(i, torch.nan_to_num(rows[:, i]), out)
            weight += torch.where(unknown[:, i], torch.zeros_like(known), known)
            value = self._input(i, rows[:, i])
        return rows, weight

    @torch.no_grad()
    def draw(
        self,
        n: int,
        y: Tensor | None = None,
        T: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """n independent draws ``(n, d)``; with y ``(n, q)`` one of each."""
        generator = fresh(generator)
        device, dtype = self.placement()
        x = torch.zeros(n, len(self.levels), device=device, dtype=dtype)
        free = torch.ones_like(x, dtype=torch.bool)
        m = len(
            self.orders
        )  # in turn: the mean of their densities, with less variance than at random
        for j, order in enumerate(self.orders):
            own = slice(j, n, m)
            if len(x[own]):
                given = None if y is None else y[own]
                x[own] = self.complete(x[own], free[own], given, T, generator, order)[0]
        return x

    @property
    def ancestral(self) -> Callable[..., dict[str, Tensor]] | None:
        """Exact draws of x at T = 1, for an energy of x alone."""
        return None if self.context_size else self._joint

    def _joint(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        if T != 1:
            raise Unsupported(f"draws column by column are exact at T=1 only, got T={T}")
        return {"x": self.draw(n, generator=generator)}

    @offers.log_partition("x")
    def total(self, T: float = 1.0, y: Tensor | None = None) -> Tensor:
        """0 at T = 1."""
        if T != 1:
            raise Unsupported(f"the normaliser is known at T=1 only, got T={T}")
        device, dtype = self.placement()
        return torch.zeros(1 if y is None else len(y), device=device, dtype=dtype)


def _scale(raw: Tensor) -> Tensor:
    return functional.softplus(raw + math.log(math.e - 1)) + FLOOR
