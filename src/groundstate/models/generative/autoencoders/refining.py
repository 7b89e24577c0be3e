r"""Posteriors row by row: from an encoder's answer up the bound
:math:`J = E_q[\log p(x, z)] + H(q)` in :math:`(\mu, \log\sigma^2)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from groundstate.compute.display import Displayed, span
from groundstate.energy.latent.deep.energy import DeepLatentEnergy
from groundstate.energy.spaces import Real
from groundstate.infer.base import ask
from groundstate.infer.variational.codes import CodeFamily
from groundstate.infer.variational.families import Gaussian
from groundstate.infer.variational.variational import Bound, Variational

NOISE = 64  # fixed noise vectors under the bound


class Refined(NamedTuple):
    """Numbers of q ``(B, P)`` and the bound before and after ``(B,)``."""

    params: Tensor
    start: Tensor
    elbo: Tensor


def refined(
    energy: DeepLatentEnergy,
    family: CodeFamily,
    x: Tensor,
    y: Tensor | None,
    start: Tensor | None,
    steps: int,
) -> Refined:
    """Numbers of q after so many steps of L-BFGS on each row, from ``start`` or from scratch."""
    known = {"x": x} if y is None else {"x": x, "y": y}
    query = ask(energy, ("z",), {name: v.detach() for name, v in known.items()})
    bound = Bound(query, Variational(family=family, n=NOISE, max_iter=max(1, steps)))
    held = [p for p in energy.parameters() if p.requires_grad]
    for p in held:
        p.requires_grad_(False)
    try:
        if start is None:
            start = family.init(energy.spaces["z"], len(x), device=x.device, dtype=x.dtype)
        found = bound.fit(start.detach()) if steps > 0 else start.detach()
        with torch.no_grad():
            return Refined(found, -bound.value(start.detach()), -bound.value(found))
    finally:
        for p in held:
            p.requires_grad_(True)


@dataclass(frozen=True)
class Refinement(Displayed):
    """Posteriors after some steps of their own.

    Attributes
    ----------
    mean, std : (n_samples, n_components) arrays of q
    start, elbo : (n_samples,) arrays, the bound at the encoder's answer and after the steps
    """

    mean: Any
    std: Any
    start: Any
    elbo: Any

    @classmethod
    def joined(
        cls, parts: Sequence[Refined], family: CodeFamily, home: Any, log_scale: float
    ) -> Refinement:
        params = torch.cat([p.params for p in parts])
        assert isinstance(family, Gaussian)
        k = int(family.parts(params).mean.shape[1])
        mean, scale = family.split(Real(k), params)
        std = scale.square().sum(-1).sqrt() if scale.ndim == 3 else scale
        bounds = [torch.cat([getattr(p, name) for p in parts]) for name in ("start", "elbo")]
        return cls(home.give(mean), home.give(std), *(home.give(b - log_scale) for b in bounds))

    def _facts(self) -> dict[str, object]:
        return {"rows": len(self.elbo), "start": span(self.start), "elbo": span(self.elbo)}


def refinement(model: Any, X: Any, y: Any, steps: int) -> Refinement:
    """Posteriors of rows of a table, from the encoder's answer on."""
    x, home = model._rows(X)
    given = model._contexts_of(y, x)
    found = []
    for rows, own in model._blocks(x, given):
        with torch.no_grad():
            start = model._numbers(rows, own)
        found.append(refined(model.energy_, model._family, rows, own, start, steps))
    return Refinement.joined(found, model._family, home, model.coding_.log_scale)
