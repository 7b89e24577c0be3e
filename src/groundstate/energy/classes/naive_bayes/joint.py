r"""The joint energy of a class and its features, :math:`e(x, y) = -\log\pi_y - \log p(x\mid y)`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Categorical, Distribution
from torch.nn.functional import one_hot

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.basic.initial import seeded
from groundstate.energy.classes.naive_bayes.sums_numba import class_sums
from groundstate.energy.spaces import Finite, Space
from groundstate.errors import Unsupported
from groundstate.math.distributions.operations import draw
from groundstate.math.info.free_energy import boltzmann_logits

LOWEST = -100.0  # log of a probability of zero: keeps 0 · log 0 a number


class JointClassEnergy(Energy):
    r"""Base of generative class energies, :math:`e(x, y) = -\log\pi_y - \log p(x\mid y)`.

    It is normalised over x and y for every θ, so lowering it on data is maximum likelihood, which
    ``stats`` and ``from_stats`` do in one pass. Minimising over y is classification.

    Parameters
    ----------
    k : number of classes
    x : space of the features
    prior : ``(k,)`` probabilities that are kept, or None to learn them

    Attributes
    ----------
    logits : Parameter, ``(k,)``; π is their softmax
    sums : the statistics of the last ``from_stats``; further rows add to them
    """

    normalised = frozenset({"x", "y"})

    def __init__(self, k: int, x: Space, prior: Sequence[float] | Tensor | None = None) -> None:
        super().__init__(x=x, y=Finite(k))
        self.k, self.prior = k, None if prior is None else [float(p) for p in prior]
        self.logits = nn.Parameter(torch.zeros(k))
        self.sums: dict[str, Tensor] = {}

    def kept_prior(self) -> dict[str, Any]:
        """The constructor's ``prior``, for ``config``."""
        return {"prior": self.prior}

    @abstractmethod
    def log_likelihood(self, x: Tensor) -> Tensor:
        r""":math:`\log p(x\mid y)` of all classes, ``(B, k)``."""

    @abstractmethod
    def draw_x(self, y: Tensor, generator: torch.Generator) -> Tensor:
        """One x for each class of ``y``, ``(B, *event)``."""

    @property
    def log_prior(self) -> Tensor:
        r""":math:`\log\pi`, ``(k,)``."""
        return torch.log_softmax(self.logits, 0)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.energies(x).gather(1, y[:, None]).squeeze(1)

    @offers.table("y")
    def energies(self, x: Tensor) -> Tensor:
        return -(self.log_prior + self.log_likelihood(x))

    @offers.conditional("y")
    def distribution(self, x: Tensor, T: float = 1.0) -> Categorical:
        return Categorical(logits=boltzmann_logits(self.energies(x), T), validate_args=False)

    @offers.log_partition("y")
    def log_evidence(self, x: Tensor, T: float = 1.0) -> Tensor:
        return torch.logsumexp(boltzmann_logits(self.energies(x), T), -1)

    def ancestral(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Exact joint draws: a class by its prior, then x from its distribution."""
        if T != 1:
            raise Unsupported(f"ancestral draws of {type(self).__name__} are at T=1, got T={T}")
        generator = seeded(generator)
        y = draw(Categorical(logits=self.log_prior.detach()), n, generator)
        return {"x": self.draw_x(y, generator), "y": y}

    def per_class(self, y: Tensor | Distribution, weights: Tensor | None) -> Tensor:
        """Weights of rows in classes, ``(B, k)`` float64; a distribution of y gives expected weights."""
        r = y.probs if isinstance(y, Categorical) else one_hot(y, self.k)  # type: ignore[arg-type]
        r = r.double()
        return r if weights is None else r * weights.double()[:, None]

    def sums_of(
        self,
        values: Tensor,
        y: Tensor | Distribution,
        weights: Tensor | None,
        origin: Tensor | None = None,
        squares: bool = False,
    ) -> dict[str, Tensor]:
        """Weight per class ``n`` ``(k,)``, weighted sums ``x`` and ``xx`` ``(k, m)`` of values.

        The values ``(B, m)`` and, where asked for, their squares are taken about an ``origin``
        ``(k, m)`` per class. All sums are in float64.
        """
        if values.layout == torch.sparse_csr:
            r = self.per_class(y, weights)
            return {"n": r.sum(0), "x": _transposed_product(values, r).T.contiguous()}
        if origin is None:
            origin = values.new_zeros(self.k, values.shape[1], dtype=torch.float64)
        if values.is_cuda or isinstance(y, Distribution):
            r = self.per_class(y, weights)
            rows = values.double()
            if not isinstance(y, Distribution):
                rows = rows - origin[y]
            sums = {"n": r.sum(0), "x": r.T @ rows}
            return {**sums, "xx": r.T @ rows.square()} if squares else sums
        w = np.empty(0) if weights is None else weights.double().numpy()
        found = class_sums(values.detach().numpy(), y.numpy(), w, origin.double().numpy(), squares)
        names = ("n", "x", "xx") if squares else ("n", "x")
        return {name: torch.from_numpy(v) for name, v in zip(names, found, strict=False)}

    @torch.no_grad()
    def _keep(self, stats: dict[str, Tensor]) -> None:
        self.sums = stats
        weight = stats["n"] if self.prior is None else stats["n"].new_tensor(self.prior)
        self.logits.copy_((weight / weight.sum()).log())


def _transposed_product(x: Tensor, r: Tensor) -> Tensor:
    """xᵀr for rows x in CSR form, ``(d, k)``."""
    turned = torch.sparse_csc_tensor(
        x.crow_indices(), x.col_indices(), x.values().double(), (x.shape[1], x.shape[0])
    )
    product: Tensor = turned @ r
    return product
