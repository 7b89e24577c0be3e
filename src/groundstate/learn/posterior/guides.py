r"""Where q comes from: a table with one distribution per row, or a network that reads the row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from groundstate.compute.weight_line.hashing import row_hash
from groundstate.energy.base import Energy
from groundstate.energy.spaces import Finite
from groundstate.errors import ShapeError
from groundstate.infer.base import ask
from groundstate.infer.variational.families import Categorical, Family, Gaussian, MeanField
from groundstate.infer.variational.variational import Bound
from groundstate.infer.variational.variational import Variational as Fit
from groundstate.learn.base import Batch
from groundstate.learn.rules.variational import Estimator, Variational
from groundstate.math.distributions.operations import gaussian_moments, is_gaussian

Families = Family | Mapping[str, Family] | None


def lowered(
    energy: Energy,
    families: Mapping[str, Family],
    known: Batch,
    phi: Tensor,
    *,
    steps: int,
    T: float = 1.0,
    n: int = 64,
) -> Tensor:
    r"""Parameters ``(B, P)`` of q after ``steps`` L-BFGS steps down :math:`E_q[e] - T\,H(q)`.

    Every row starts from its own ``phi`` and never ends above it: sums over finite latents and
    averages of quadratics are exact, other averages use the same ``n`` noise vectors throughout.
    """
    held = [p for p in energy.parameters() if p.requires_grad]
    for p in held:
        p.requires_grad_(False)
    try:
        query = ask(energy, tuple(families), {k: v.detach() for k, v in known.items()}, T=T)
        return Bound(query, Fit(family=dict(families), n=n, max_iter=steps)).fit(phi.detach())
    finally:
        for p in held:
            p.requires_grad_(True)


def posterior_in_family(
    energy: Energy, name: str, family: Family, known: Batch, T: float
) -> Tensor | None:
    """Parameters of the exact posterior where the family is known to hold it, else None."""
    space = energy.spaces[name]
    every = isinstance(family, Categorical)
    every = every or (isinstance(family, MeanField) and isinstance(space, Finite))
    if every and family.reason_against(space) is None:
        table = energy.table(name, **known)
        return table * (-1.0 / T)
    conditional = energy.ability("conditional", name)
    if not isinstance(family, Gaussian) or conditional is None:
        return None
    distribution = conditional(**known, T=T)
    if not is_gaussian(distribution) or tuple(distribution.event_shape) != tuple(space.shape):
        return None
    if family.covariance != "full" and distribution.event_shape.numel() > 1:
        return None
    mean, covariance = gaussian_moments(distribution)
    return family.params(mean, covariance)


def _distributions(
    energy: Energy, families: Mapping[str, Family], phi: Tensor
) -> dict[str, Distribution]:
    sizes = [family.size(energy.spaces[name]) for name, family in families.items()]
    parts = phi.split(sizes, 1)
    return {
        name: family.distribution(energy.spaces[name], part)
        for (name, family), part in zip(families.items(), parts, strict=True)
    }


class PerInstance(Variational):
    r"""One distribution per row: a table of parameters :math:`\varphi_i`, each lowered when its row is met.

    For ``rule.latent``. A row is known by its content, so repeated rows share their distribution,
    batches touch only their own rows, and the order of the data does not matter. The table grows by
    the rows it meets and is part of ``state_dict``.

    Parameters
    ----------
    family : Family or mapping by name; None is mean field
    steps : L-BFGS steps on the rows of a batch, from where they stood
    n, estimator : see ``Variational``

    Attributes
    ----------
    phi : ``(N, P)`` parameters of the rows met so far, and ``rows``, their number

    Examples
    --------
    >>> from groundstate.energy import LinearGaussianEnergy
    >>> from groundstate.infer.variational.families import Gaussian
    >>> from groundstate.learn import NLL
    >>> energy, x = LinearGaussianEnergy(2, 1), torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    >>> q = PerInstance(Gaussian("full"))
    >>> bound = NLL(latent=q)(energy, {"x": x}).loss
    >>> q.rows, bool(torch.allclose(bound, NLL()(energy, {"x": x}).loss, atol=1e-4))
    (2, True)
    """

    phi: Tensor
    keys: Tensor

    def __init__(
        self,
        family: Families = None,
        *,
        steps: int = 20,
        n: int = 1,
        estimator: Estimator = "auto",
    ) -> None:
        super().__init__(family, n, estimator)
        if steps < 1:
            raise ValueError(f"steps must be at least 1, got {steps}")
        self.steps = steps
        self.register_buffer("keys", torch.empty(0, dtype=torch.int64))  # sorted row hashes
        self.register_buffer("phi", torch.empty(0, 0))

    @property
    def rows(self) -> int:
        return int(self.keys.shape[0])

    @torch.no_grad()
    def index(self, energy: Energy, families: Mapping[str, Family], known: Batch) -> Tensor:
        """The place of each row in the table ``(B,)``; rows not met before are added."""
        columns = [v.detach().reshape(len(v), -1) for v in known.values()]
        device, dtype = energy.placement(known)
        hashed = torch.from_numpy(row_hash(*columns).view("int64").copy()).to(device)
        if not self.rows:
            self.keys = self.keys.to(device)
            size = sum(f.size(energy.spaces[name]) for name, f in families.items())
            self.phi = torch.empty(0, size, device=device, dtype=dtype)
        fresh = torch.unique(hashed[~torch.isin(hashed, self.keys)])
        if len(fresh):
            start = [
                f.init(energy.spaces[name], len(fresh), device=device, dtype=dtype)
                for name, f in families.items()
            ]
            keys, order = torch.cat([self.keys, fresh]).sort()
            self.phi = torch.cat([self.phi, torch.cat(start, 1)])[order]
            self.keys = keys
        return torch.searchsorted(self.keys, hashed)

    def distributions(
        self, energy: Energy, latents: tuple[str, ...], known: Batch, T: float = 1.0
    ) -> dict[str, Distribution]:
        families = self.families(energy, latents)
        at = self.index(energy, families, known)
        phi = None
        if len(families) == 1:
            ((name, family),) = families.items()
            with torch.no_grad():
                phi = posterior_in_family(energy, name, family, known, T)
        if phi is None:
            phi = lowered(energy, families, known, self.phi[at], steps=self.steps, T=T)
        self.phi[at] = phi
        return _distributions(energy, families, phi)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        for name in ("keys", "phi"):  # the stored table may be longer than this one
            if prefix + name in state_dict:
                setattr(self, name, torch.empty_like(state_dict[prefix + name]))
        super()._load_from_state_dict(state_dict, prefix, *args)


class _Reader(nn.Module):
    """Calls a network with the known variables, flattened and joined in their order."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, **known: Tensor) -> Tensor:
        dtype = next((p.dtype for p in self.net.parameters()), torch.get_default_dtype())
        x = torch.cat([v.reshape(len(v), -1).to(dtype) for v in known.values()], 1)
        phi: Tensor = self.net(x)
        return phi


class Amortised(Variational):
    r"""A network that reads the row and says its distribution, :math:`q_{\varphi(x)}(z)`.

    For ``rule.latent``; the network learns along with θ on the same bound.

    Parameters
    ----------
    net : maps the known variables, flattened and joined, to parameters ``(B, P)``
    family : Family or mapping by name; None is mean field
    n, estimator : see ``Variational``

    Examples
    --------
    >>> from groundstate.energy import DecoderEnergy
    >>> from groundstate.infer.variational.families import Gaussian
    >>> from groundstate.learn import NLL
    >>> from groundstate.nn.blocks.mlp import MLP
    >>> rule = NLL(latent=Amortised(MLP(3, (8,), 4), Gaussian("diag")))
    >>> rule(DecoderEnergy(3, 2), {"x": torch.zeros(5, 3)}).loss.shape
    torch.Size([5])
    """

    def __init__(
        self, net: nn.Module, family: Families = None, *, n: int = 1, estimator: Estimator = "auto"
    ) -> None:
        super().__init__(family, n, estimator, encoder=_Reader(net))

    def parameters_of(self, energy: Energy, latents: tuple[str, ...], known: Batch) -> Tensor:
        """φ(x) ``(B, P)``."""
        assert self.encoder is not None
        phi: Tensor = self.encoder(**{n: v for n, v in known.items() if n in energy.spaces})
        families = self.families(energy, latents)
        size = sum(f.size(energy.spaces[name]) for name, f in families.items())
        if phi.ndim != 2 or phi.shape[1] != size:
            raise ShapeError(
                f"the network of Amortised must return (B, {size}) parameters of q for "
                f"{', '.join(latents)}, got {tuple(phi.shape)}"
            )
        return phi

    def distributions(
        self, energy: Energy, latents: tuple[str, ...], known: Batch, T: float = 1.0
    ) -> dict[str, Distribution]:
        families = self.families(energy, latents)
        return _distributions(energy, families, self.parameters_of(energy, latents, known))

    def refine(
        self, energy: Energy, known: Batch, steps: int = 10, *, T: float = 1.0
    ) -> dict[str, Distribution]:
        """q for these rows: the network's answer, then ``steps`` steps down the bound per row.

        No row ends with a worse bound than the network gave it.
        """
        latents = energy.ordered(set(energy.spaces) - set(known))
        families = self.families(energy, latents)
        with torch.no_grad():
            phi = self.parameters_of(energy, latents, known)
        return _distributions(
            energy, families, lowered(energy, families, known, phi, steps=steps, T=T)
        )
