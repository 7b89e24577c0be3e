r"""Tables column by column with one masked network."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, ClassVar

import torch
from torch import Tensor

from groundstate import registry
from groundstate.compute.foreign.sklearn import Interval
from groundstate.compute.random import Key
from groundstate.energy.sequences.masked_density import MaskedDensityEnergy
from groundstate.errors import DataError
from groundstate.models.generative.coding import Coding
from groundstate.models.generative.network import NetworkGenerator

PARTICLES = (
    64  # draws of which one is taken by its weight, where known cells stand after unknown ones
)


@registry.models.register(family="autoregressive", task="generation", role="generator")
class MADE(NetworkGenerator):
    r"""The columns of a table one after the other, all factors by one masked network.

    .. math:: e(x) = -\sum_i\log p(x_{\pi(i)}\mid x_{\pi(1)},\dots,x_{\pi(i-1)}) = -\log p(x)

    A real column has a Gaussian or a mixture of them, a column of categories or of ``binary`` zeros and ones
    a probability for each level. Densities take one pass, draws one pass in d steps.

    Parameters
    ----------
    n_components : int
        Gaussians of a real column.
    binary : bool
        Whether columns that hold nothing but 0 and 1 are bits with probabilities; False takes them as real
        numbers.
    order : sequence of int, or None
        Order of the columns; the one of the table unless given.
    order_agnostic : bool
        Learn with a new random order in every step. The density is the mean over ``n_orders`` orders, and
        missing cells are drawn in an order that has the known ones first.
    n_orders : int

    Attributes
    ----------
    energy_ : MaskedDensityEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import MADE
    >>> rng = np.random.default_rng(0)
    >>> a = rng.integers(0, 2, 400)
    >>> X = np.stack([a, a, rng.integers(0, 2, 400)], 1).astype(float)  # the second copies the first
    >>> model = MADE(hidden_layer_sizes=(16,), max_iter=100, random_state=0).fit(X)
    >>> model.score(X) > -1.6  # two free bits have -2 log 2, three would have -2.08
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "binary": ["boolean"],
        "order": ["array-like", None],
        "order_agnostic": ["boolean"],
        "n_orders": [Interval(Integral, 1, None, closed="left")],
    }
    category_code: ClassVar[str] = "levels"
    precision: str = "32"
    energy_: MaskedDensityEnergy

    def __init__(
        self,
        n_components: int = 1,
        *,
        binary: bool = True,
        order: Any = None,
        order_agnostic: bool = False,
        n_orders: int = 8,
        hidden_layer_sizes: Any = (64, 64),
        activation: str = "relu",
        solver: Any = "adam",
        learning_rate_init: float = 1e-2,
        batch_size: Any = 128,
        max_iter: int = 60,
        alpha: float = 0.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: float = math.inf,
        tol: float = 1e-4,
        warm_start: bool = False,
        scale: str | None = "standard",
        dequantize: bool = False,
        ema_decay: float | None = None,
        clip_norm: float | None = 5.0,
        schedule: Any = "cosine",
        verbose: Any = False,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _learn_coding(self, X: Tensor, weight: Tensor | None) -> None:
        levels = {j: len(v) for j, v in getattr(self, "_levels", {}).items()}
        if self.binary:
            bits = ((X == 0) | (X == 1)).all(0) & (X.amin(0) < X.amax(0))
            levels |= {j: 2 for j in bits.nonzero()[:, 0].tolist() if j not in levels}
        self.coding_ = Coding.learned(
            X,
            levels,
            code=self.category_code,
            scale=self.scale,
            dequantize=self.dequantize,
            pooled=len(self.event_shape_) > 1,
            weight=weight,
        )

    def _energy_of(self, x: Tensor, y: Tensor | None, key: Key) -> MaskedDensityEnergy:  # type: ignore[override]
        # a category of which one level was seen is certain: two, of which one never comes
        levels = [max(k, 2) if k else 0 for k in self.levels_]
        energy = MaskedDensityEnergy(
            levels, self.n_components, self._hidden, self.activation,
            0 if y is None else y.shape[1], self.order, self.order_agnostic, self.n_orders,
            generator=key.torch(),
        )  # fmt: skip
        return energy.to(x.device, x.dtype)

    def _rows(self, X: Any) -> tuple[Tensor, Any]:
        x, home = super()._rows(X)
        inside = self.energy_.spaces["x"].contains(x)
        if not bool(inside.all()):
            i = int((~inside).nonzero()[0, 0])
            raise DataError(
                f"row {i} of X holds a value that is none of its column's levels: columns of zeros and "
                "ones were learned as bits; fit with binary=False to take them as real numbers"
            )
        return x, home

    def _draw(
        self, n: int, y: Tensor | None, T: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        return self.energy_.draw(n, y, T, generator), None

    def _fill(
        self, x: Tensor, unknown: Tensor, y: Tensor | None, how: str, generator: torch.Generator
    ) -> Tensor:
        out = x.clone()
        patterns, which = torch.unique(unknown, dim=0, return_inverse=True)
        for p, gone in enumerate(patterns):
            own = which == p
            given = None if y is None else y[own]
            out[own] = self._fill_pattern(x[own], gone, given, how, generator)
        return out

    def _log_known_by_y(
        self, x: Tensor, unknown: Tensor, contexts: Tensor, generator: torch.Generator
    ) -> Tensor:
        many, gone = (v.repeat_interleave(PARTICLES, 0) for v in (x, unknown))
        each = [
            self.energy_.complete(many, gone, c.expand(len(many), -1), 1.0, generator)[1]
            for c in contexts
        ]
        return torch.stack([w.view(-1, PARTICLES).logsumexp(1) for w in each], 1)

    def _fill_pattern(
        self, x: Tensor, gone: Tensor, y: Tensor | None, how: str, generator: torch.Generator
    ) -> Tensor:
        """Rows that all have the same unknown columns."""
        energy, d = self.energy_, x.shape[1]
        order = list(energy.net.order)
        if self.order_agnostic:  # known columns first: draws are exact
            known = [i for i in range(d) if not bool(gone[i])]
            order = known + [i for i in range(d) if bool(gone[i])]
        places = [bool(gone[i]) for i in order]
        direct = places == sorted(places)
        m = 1 if direct and how == "sample" else PARTICLES
        many = x.repeat_interleave(m, 0)
        contexts = None if y is None else y.repeat_interleave(m, 0)
        T = 1.0 if how == "sample" else 0.1
        rows, weight = energy.complete(many, gone.expand_as(many), contexts, T, generator, order)
        if m == 1:
            return rows
        if how == "minimise":  # of many draws near the modes the best
            weight = self._log_prob(rows, contexts)
            chosen = weight.view(-1, m).argmax(1)
        else:
            p = torch.softmax(weight.view(-1, m), 1)
            chosen = torch.multinomial(p, 1, generator=generator)[:, 0]
        return rows.view(-1, m, d)[torch.arange(len(x), device=x.device), chosen]
