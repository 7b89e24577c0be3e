r"""Columns of a table by the chain rule, :math:`e(x) = -\sum_j\log p(x_{\pi(j)}\mid x_{\pi(<j)}, y)`."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributions as D
from torch.distributions import Distribution

from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.sequences.autoregressive import Autoregressive, permutation
from groundstate.energy.spaces import Real
from groundstate.errors import Unsupported
from groundstate.math.distributions.operations import fresh
from groundstate.nn.columns import ColumnHeads, ColumnSequence, MaskedColumns

NETWORKS = ("made", "gru", "attention", "linear")


@registered(
    r"e(x) = -\sum_j \log p(x_j \mid x_{<j}),\ \text{columns of levels or reals}",
    lambda: ColumnChainEnergy((0, 0, 0), hidden=(6,), components=2, spread=0.5),
)
class ColumnChainEnergy(Autoregressive, Energy):
    r"""Columns one after the other, each a categorical distribution or a mixture given those before,
    :math:`e(x) = -\sum_j\log p(x_{\pi(j)}\mid x_{\pi(1)}, \dots, x_{\pi(j-1)}, y)`.

    Every factor is normalised, so the whole is: log densities are exact and draws independent. Any
    order π is valid.

    Parameters
    ----------
    levels : number of levels of each column, whose values are 0, 1, ...; 0 for a real column
    net : "made" (a masked dense network), "linear" (the same without hidden layers), "gru",
        "attention", or a module like ``groundstate.nn.columns.MaskedColumns``
    hidden : widths of hidden layers; of "gru" and "attention" the size of a state, once for each layer
    activation : of hidden layers
    components : K, of the mixtures of real columns; 1 is a normal distribution
    family : of the mixtures, "normal" or "logistic"
    min_scale : the least scale of a component
    context : size of the vector y that is given; 0 is none
    order : π; by default 0, 1, 2, ...
    spread : of random first outputs; 0 starts at zeros
    generator : source of the initial weights

    Examples
    --------
    >>> e = ColumnChainEnergy((2, 2, 3))
    >>> from itertools import product
    >>> every = torch.tensor(list(product(range(2), range(2), range(3)))).float()
    >>> round(e.log_prob(every).exp().sum().item(), 5)
    1.0
    >>> e.sample(4).shape
    torch.Size([4, 3])
    """

    normalised = frozenset({"x"})
    variable = "x"

    def __init__(
        self,
        levels: Seq[int],
        net: str | nn.Module = "made",
        hidden: Seq[int] = (64, 64),
        activation: str = "relu",
        components: int = 5,
        family: str = "normal",
        min_scale: float = 1e-2,
        context: int = 0,
        order: Seq[int] | None = None,
        *,
        spread: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        spaces = {"x": Real(len(levels))} | ({"y": Real(context)} if context else {})
        super().__init__(**spaces)
        self.levels, self.hidden, self.activation = tuple(levels), tuple(hidden), activation
        self.components, self.family, self.min_scale = components, family, min_scale
        self.size = context
        self.order = permutation(order, len(self.levels))
        self.heads = ColumnHeads(self.levels, components, family, min_scale)
        self.kind = net if isinstance(net, str) else None
        made: Any = self._network(net, generator) if isinstance(net, str) else net
        self.net: Any = made
        if spread:
            g = generator or torch.Generator().manual_seed(1)
            made.start_at(spread * torch.randn(sum(self.heads.sizes), generator=g))

    def _network(self, net: str, generator: torch.Generator | None) -> nn.Module:
        widths, sizes = self.heads.widths, self.heads.sizes
        if net in ("made", "linear"):
            hidden = self.hidden if net == "made" else ()
            return MaskedColumns(
                widths, sizes, hidden, self.activation, self.size, self.order, generator=generator
            )
        if net not in NETWORKS:
            raise ValueError(f"net must be one of {', '.join(NETWORKS)} or a module, got {net!r}")
        if not self.hidden:
            raise ValueError(f"net={net!r} needs the size of a state, got hidden={self.hidden}")
        dim = self.hidden[0]
        heads = next(h for h in (4, 2, 1) if dim % h == 0)
        return ColumnSequence(
            widths, sizes, net, dim, len(self.hidden), heads, self.size, self.order,
            generator=generator,
        )  # fmt: skip

    def config(self) -> dict[str, Any]:
        return {
            "levels": list(self.levels), "net": self.net if self.kind is None else self.kind,
            "hidden": list(self.hidden), "activation": self.activation,
            "components": self.components, "family": self.family, "min_scale": self.min_scale,
            "context": self.size, "order": list(self.order),
        }  # fmt: skip

    @torch.no_grad()
    def start_at(self, x: Tensor, weight: Tensor | None = None) -> None:
        """Start with every column's own distribution among these rows."""
        self.net.start_at(self.heads.marginals(x, weight))

    def factors(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Log-probabilities of each column given those before it, ``(B, d)``."""
        return self.heads.log_prob(self.net(self.heads.features(x), y), x)

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        return -self.factors(x, y).sum(1)

    @torch.no_grad()
    def conditional(self, prefix: Tensor, **given: Any) -> Distribution:
        """The distribution of the column that follows ``prefix`` ``(B, P)``, batch shape ``(B,)``."""
        prefix = self._checked(prefix).to(self.placement()[1])
        steps = self.net.stepper(len(prefix), given.get("y"))
        out = steps.next(None)
        for at, value in enumerate(prefix.T):
            out = steps.next(self.heads.feature(value, self.order[at]))
        if self.levels[self.order[prefix.shape[1]]]:
            return D.Categorical(logits=out, validate_args=False)
        if self.family != "normal":
            raise Unsupported("mixtures of logistic distributions have no torch distribution here")
        log_pi, mu, sigma = self.heads.parameters_of(out)
        return D.MixtureSameFamily(
            D.Categorical(logits=log_pi, validate_args=False),
            D.Normal(mu, sigma, validate_args=False),
            validate_args=False,
        )

    def ancestral(
        self,
        n: int,
        *,
        T: float = 1.0,
        generator: torch.Generator | None = None,
        y: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """Independent draws, column by column, ``(n, d)``; exact at T = 1."""
        device, dtype = self.placement()
        x = torch.zeros(n, len(self.levels), device=device, dtype=dtype)
        free = torch.ones(n, len(self.levels), dtype=torch.bool, device=device)
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
        """Draw the free cells ``(B, d)`` in the order, each given all that stand before it.

        Returns
        -------
        rows ``(B, d)``, and the log-probability ``(B,)`` of their known cells given what stands before
        them: the weight of a row as a draw given all known cells
        """
        generator = fresh(generator)
        steps = self.net.stepper(len(x), y)
        value, log_w, before = x.clone(), x.new_zeros(len(x)), None
        for j in self.order:
            out = steps.next(before)
            open_, known = free[:, j], ~free[:, j]
            if bool(open_.any()):
                drawn = self.heads.draw(out, j, T, generator)
                value[:, j] = torch.where(open_, drawn, value[:, j])
            if bool(known.any()):
                own = self.heads._grouped(out[:, None], value[:, j : j + 1], self.levels[j])[:, 0]
                log_w = log_w + torch.where(known, own, 0.0)
            before = self.heads.feature(value[:, j], j)
        return value, log_w
