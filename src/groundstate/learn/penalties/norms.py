r"""Penalties: priors on θ, :math:`\Omega(\theta) = -\log p(\theta)` up to a constant.

A penalty stands on the scale of the *summed* loss,
:math:`J(\theta) = (\sum_i w_i L_i + \Omega(\theta)) / \sum_i w_i`, so that it does not depend on
how the rows are cut into batches. Intercepts are left alone unless asked for.
"""

from __future__ import annotations

import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, Laplace, Normal

from groundstate.energy.base import Energy
from groundstate.errors import Unsupported
from groundstate.learn.base import Penalty
from groundstate.registry import penalties

INTERCEPTS = frozenset({"b", "bias", "intercept"})
Select = Callable[[str, Tensor], bool] | Iterable[str] | None


def penalised(
    energy: nn.Module, select: Select = None, intercept: bool = False
) -> list[tuple[str, nn.Module, str]]:
    """The parameters a penalty applies to, as ``(name, owner, attribute)``.

    Left out, unless ``intercept``: parameters called ``b``, ``bias`` or ``intercept``, and those
    that a module lists in its ``unpenalised``. ``select`` is a predicate of name and value, or
    patterns such as ``"W"`` or ``"net.*"``, and then decides alone.
    """
    predicate = select if callable(select) else None
    patterns: tuple[str, ...] | None = None
    if select is not None and not callable(select):
        patterns = (select,) if isinstance(select, str) else tuple(select)
    found = []
    for prefix, module in energy.named_modules():
        left_out = INTERCEPTS | set(getattr(module, "unpenalised", ()))
        for leaf, parameter in module.named_parameters(recurse=False):
            name = f"{prefix}.{leaf}" if prefix else leaf
            if predicate is not None:
                wanted = predicate(name, parameter)
            elif patterns is not None:
                wanted = any(fnmatchcase(name, p) or fnmatchcase(leaf, p) for p in patterns)
            else:
                wanted = intercept or leaf not in left_out
            # frozen parameters are left out; a plain tensor stands in under functional_call
            frozen = isinstance(parameter, nn.Parameter) and not parameter.requires_grad
            if wanted and not frozen:
                found.append((name, module, leaf))
    if patterns is not None and not found:
        raise ValueError(
            f"select={patterns!r} matches no parameter of {type(energy).__name__}; its parameters "
            f"are {', '.join(name for name, _ in energy.named_parameters())}"
        )
    return found


class SeparablePenalty(Penalty):
    """A penalty that is a sum of one function of every chosen entry of θ.

    Parameters
    ----------
    select : predicate ``(name, parameter) -> bool`` or name patterns, optional
        Which parameters to penalise; None takes all but the intercepts.
    intercept : bool, default=False
        Penalise the intercepts too.
    """

    def __init__(self, *, select: Select = None, intercept: bool = False) -> None:
        super().__init__()
        self.select, self.intercept = select, intercept
        self._found: tuple[Any, list[tuple[str, nn.Module, str]]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_found": None}

    def penalised(self, energy: nn.Module) -> list[tuple[str, nn.Module, str]]:
        """The parameters this penalty applies to; remembered for the last energy."""
        if self._found is None or self._found[0]() is not energy:
            found = penalised(energy, self.select, self.intercept)
            self._found = (weakref.ref(energy), found)
        return self._found[1]

    def value(self, energy: nn.Module) -> Tensor:
        total: Tensor | None = None
        for _, owner, leaf in self.penalised(energy):
            part = self.value_of(getattr(owner, leaf))
            total = part if total is None else total + part
        if total is None:
            return next((p.new_zeros(()) for p in energy.parameters()), torch.zeros(()))
        return total

    @torch.no_grad()
    def prox(self, energy: nn.Module, step: float | Tensor) -> None:
        r"""θ ← :math:`\arg\min_u \tfrac12\|u-\theta\|^2 + \text{step}\,\Omega(u)`, in place."""
        for _, owner, leaf in self.penalised(energy):
            theta = getattr(owner, leaf)
            theta.copy_(self.prox_of(theta, step))

    @torch.no_grad()
    def distance(self, energy: nn.Module, scale: float = 1.0) -> Tensor:
        r"""Largest distance of :math:`-\nabla J` (in ``.grad``) to ``scale``·∂Ω: 0 at an optimum."""
        parts = [
            self.distance_of(getattr(owner, leaf), getattr(owner, leaf).grad, scale).max()
            for _, owner, leaf in self.penalised(energy)
        ]
        return torch.stack(parts).max() if parts else torch.zeros(())

    @abstractmethod
    def value_of(self, theta: Tensor) -> Tensor:
        """Ω of one tensor, a scalar."""

    @abstractmethod
    def prox_of(self, theta: Tensor, step: float | Tensor) -> Tensor:
        """The proximal map of ``step * Ω`` at one tensor."""

    @abstractmethod
    def distance_of(self, theta: Tensor, gradient: Tensor, scale: float = 1.0) -> Tensor:
        """Entry by entry, how far ``-gradient`` is from ``scale`` times the subgradients of Ω."""

    def alpha_max(self, gradient: Tensor) -> float:
        """Least strength at which θ = 0 is optimal, given the gradient of the loss there."""
        raise Unsupported(f"{type(self).__name__} never makes entries exactly zero")

    def prior(self) -> Distribution:
        """The distribution of one entry whose minus log density this penalty is, up to a constant."""
        raise Unsupported(f"{type(self).__name__} is no named distribution")

    def __add__(self, other: SeparablePenalty) -> SumPenalty:
        return SumPenalty(self, other)


def _strength(strength: float | Tensor, name: str = "strength") -> float | Tensor:
    if isinstance(strength, float | int) and strength >= 0:
        return strength
    if not bool(torch.as_tensor(strength >= 0).all()):
        raise ValueError(f"{name} must be non-negative, got {strength}")
    return strength


@penalties.register(formula=r"\tfrac{s}{2}\|\theta\|^2", make=lambda energy: L2(0.5))
class L2(SeparablePenalty):
    r""":math:`\Omega(\theta) = \tfrac{s}{2}\|\theta\|^2`: weight decay, ridge.

    The prior is Gaussian with variance :math:`1/s`.

    Parameters
    ----------
    strength : float, default=1.0
        :math:`s`; a scalar tensor is allowed, so that members of a population differ.
    select, intercept
        Which parameters; see ``SeparablePenalty``.

    Examples
    --------
    >>> L2(2.0).value_of(torch.tensor([1.0, 2.0]))
    tensor(5.)
    """

    def __init__(
        self,
        strength: float | Tensor = 1.0,
        *,
        select: Select = None,
        intercept: bool = False,
    ) -> None:
        super().__init__(select=select, intercept=intercept)
        self.strength = _strength(strength)

    def value_of(self, theta: Tensor) -> Tensor:
        return (0.5 * self.strength) * theta.square().sum()

    def prox_of(self, theta: Tensor, step: float | Tensor) -> Tensor:
        return theta / (1 + step * self.strength)

    def distance_of(self, theta: Tensor, gradient: Tensor, scale: float = 1.0) -> Tensor:
        return (gradient + scale * self.strength * theta).abs()

    def prior(self) -> Distribution:
        """:math:`N(0, 1/s)`."""
        s = torch.as_tensor(self.strength, dtype=torch.get_default_dtype())
        return Normal(torch.zeros_like(s), s.rsqrt())


@penalties.register(formula=r"s\,\|\theta\|_1", make=lambda energy: L1(0.5))
class L1(SeparablePenalty):
    r""":math:`\Omega(\theta) = s\,\|\theta\|_1`: the lasso, which sets entries to exactly zero.

    The prior is Laplace with scale :math:`1/s`. The proximal map is soft thresholding,
    :math:`\operatorname{sign}(\theta)\max(|\theta| - \text{step}\cdot s, 0)`.

    Parameters
    ----------
    strength : float, default=1.0
    select, intercept
        Which parameters; see ``SeparablePenalty``.

    Examples
    --------
    >>> L1(1.0).prox_of(torch.tensor([3.0, -0.5]), 1.0)
    tensor([2., -0.])
    """

    smooth = False

    def __init__(
        self,
        strength: float | Tensor = 1.0,
        *,
        select: Select = None,
        intercept: bool = False,
    ) -> None:
        super().__init__(select=select, intercept=intercept)
        self.strength = _strength(strength)

    def value_of(self, theta: Tensor) -> Tensor:
        return self.strength * theta.abs().sum()

    def prox_of(self, theta: Tensor, step: float | Tensor) -> Tensor:
        return soft_threshold(theta, step * self.strength)

    def distance_of(self, theta: Tensor, gradient: Tensor, scale: float = 1.0) -> Tensor:
        return _lasso_distance(theta, gradient, scale * self.strength)

    def alpha_max(self, gradient: Tensor) -> float:
        return float(gradient.abs().max())

    def prior(self) -> Distribution:
        """Laplace of scale 1/s."""
        s = torch.as_tensor(self.strength, dtype=torch.get_default_dtype())
        return Laplace(torch.zeros_like(s), 1 / s)


@penalties.register(
    formula=r"s\,(r\|\theta\|_1 + \tfrac{1-r}{2}\|\theta\|^2)", make=lambda energy: ElasticNet(0.5)
)
class ElasticNet(SeparablePenalty):
    r""":math:`\Omega(\theta) = s\,\bigl(r\|\theta\|_1 + \tfrac{1-r}{2}\|\theta\|^2\bigr)`.

    Parameters
    ----------
    strength : float, default=1.0
        :math:`s`.
    l1_ratio : float in [0, 1], default=0.5
        :math:`r`; 1 is ``L1``, 0 is ``L2``.
    select, intercept
        Which parameters; see ``SeparablePenalty``.

    Examples
    --------
    >>> ElasticNet(1.0, 0.5).value_of(torch.tensor([2.0]))
    tensor(2.)
    """

    smooth = False

    def __init__(
        self,
        strength: float | Tensor = 1.0,
        l1_ratio: float = 0.5,
        *,
        select: Select = None,
        intercept: bool = False,
    ) -> None:
        super().__init__(select=select, intercept=intercept)
        if not 0 <= l1_ratio <= 1:
            raise ValueError(f"l1_ratio must be in [0, 1], got {l1_ratio}")
        self.strength, self.l1_ratio = _strength(strength), l1_ratio

    @property
    def _parts(self) -> tuple[float | Tensor, float | Tensor]:
        return self.strength * self.l1_ratio, self.strength * (1 - self.l1_ratio)

    def value_of(self, theta: Tensor) -> Tensor:
        l1, l2 = self._parts
        return l1 * theta.abs().sum() + (0.5 * l2) * theta.square().sum()

    def prox_of(self, theta: Tensor, step: float | Tensor) -> Tensor:
        l1, l2 = self._parts
        return soft_threshold(theta, step * l1) / (1 + step * l2)

    def distance_of(self, theta: Tensor, gradient: Tensor, scale: float = 1.0) -> Tensor:
        l1, l2 = self._parts
        return _lasso_distance(theta, gradient + scale * l2 * theta, scale * l1)

    def alpha_max(self, gradient: Tensor) -> float:
        if self.l1_ratio == 0:
            return super().alpha_max(gradient)
        return float(gradient.abs().max()) / self.l1_ratio


class SumPenalty(Penalty):
    r""":math:`\Omega = \sum_j \Omega_j`, e.g. different strengths for different parameters.

    The proximal map exists when no parameter is penalised twice.

    Examples
    --------
    >>> layer = nn.Linear(1, 1)
    >>> _ = nn.init.ones_(layer.weight), nn.init.ones_(layer.bias)
    >>> both = L1(1.0, select="weight") + L2(4.0, select="bias")
    >>> float(both(layer).detach())
    3.0
    """

    def __init__(self, *parts: Penalty) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.smooth = all(p.smooth for p in parts)

    def __add__(self, other: Penalty) -> SumPenalty:
        return SumPenalty(*self.parts, other)

    def value(self, energy: Energy) -> Tensor:
        total = self.parts[0](energy)
        for part in self.parts[1:]:
            total = total + part(energy)
        return total

    def prox(self, energy: nn.Module, step: float | Tensor) -> None:
        """Apply the proximal map of every part in place."""
        names = [n for part in self.parts for n, _, _ in part.penalised(energy)]  # type: ignore[operator]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise Unsupported(
                f"the sum has no simple proximal map because {', '.join(twice)} is penalised "
                "twice; use ElasticNet for L1 plus L2, or select different parameters"
            )
        for part in self.parts:
            part.prox(energy, step)  # type: ignore[operator]


def soft_threshold(theta: Tensor, by: float | Tensor) -> Tensor:
    r""":math:`\operatorname{sign}(\theta)\max(|\theta| - \text{by}, 0)`."""
    return theta.sign() * (theta.abs() - by).clamp(min=0)


def _lasso_distance(theta: Tensor, gradient: Tensor, strength: float | Tensor) -> Tensor:
    inside = (gradient.abs() - strength).clamp(min=0)
    return torch.where(theta == 0, inside, (gradient + strength * theta.sign()).abs())


def plain_l2(penalty: Penalty) -> bool:
    """Whether this is L2 on all weights and no intercept, which closed forms know."""
    return isinstance(penalty, L2) and penalty.select is None and not penalty.intercept
