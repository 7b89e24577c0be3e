r"""ClosedForm: what the energy itself declares.

.. math:: F = e(z) + T\log q(z\mid\cdot)\quad\text{for any } z,\qquad q = e^{-e/T}/Z.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.energy.base import Energy
from groundstate.errors import Unsupported
from groundstate.infer.base import Draws, FreeEnergy, Method, Minimum, Query, check_energies
from groundstate.math.distributions.operations import draw, mode
from groundstate.registry import methods


@methods.register(formula=r"F = e(z) + T\log q(z\mid x)", make=lambda energy: ClosedForm())
@dataclass(frozen=True)
class ClosedForm(Method):
    r"""Use the declared ``argmin``, ``conditional`` or ``log_partition`` of the free variables.

    Minimising takes ``argmin``, else the mode of ``conditional``. Marginalising takes
    :math:`F = -T\log Z` from ``log_partition``, else the identity
    :math:`F = e(z) + T\log q(z\mid\cdot)`, which holds for every :math:`z` and is exact in value
    and in the gradient of θ when :math:`z` is held fixed; it is evaluated at the mode. Sampling
    draws from ``conditional``. A variable that is known in part needs a ``partial`` conditional.

    Examples
    --------
    >>> from groundstate.energy import Energy, Real, offers
    >>> class Squared(Energy):
    ...     def __init__(self):
    ...         super().__init__(x=Real(1), y=Real(1))
    ...     def forward(self, x, y):
    ...         return 0.5 * (y - 2 * x).square().sum(-1)
    ...     @offers.argmin("y")
    ...     def best(self, x):
    ...         return 2 * x
    >>> from groundstate.infer import minimise
    >>> minimise(Squared(), "y", {"x": torch.tensor([[3.0]])})["y"]
    tensor([[6.]])
    """

    operations: ClassVar[frozenset[str]] = frozenset({"minimise", "marginalise", "sample"})
    exact: ClassVar[bool] = True

    def _against(
        self, energy: Energy, operation: str, free: tuple[str, ...], masks: Mapping[str, Tensor]
    ) -> str | None:
        what = ", ".join(map(repr, free))
        conditional = energy.offer("conditional", *free)
        if masks:
            if conditional is not None and conditional.partial:
                return None
            return f"no conditional(partial=True) is declared for {what}, which is known in part"
        if operation == "minimise" and energy.ability("argmin", *free) is not None:
            return None
        if operation == "minimise" and conditional is not None and not conditional.mode:
            return f"the distribution of {what} is a mixture, whose mode has no closed form"
        if conditional is not None:
            return None
        if operation == "marginalise" and energy.ability("log_partition", *free) is not None:
            return None
        wanted = {"minimise": "argmin or ", "marginalise": "log_partition or ", "sample": ""}
        return f"no {wanted[operation]}conditional is declared for {what}"

    @torch.no_grad()
    def minimise(self, query: Query) -> Minimum:
        argmin = None if query.masks else query.energy.ability("argmin", *query.free)
        if argmin is not None:
            value = argmin(**query.fixed)
        else:
            distribution = distribution_of(query, T=1.0)
            try:
                value = mode(distribution)
            except NotImplementedError:
                raise Unsupported(
                    f"the distribution {type(distribution).__name__} of {query.free[0]!r} has no known mode; "
                    "minimise with Gradient or Coordinate"
                ) from None
        if isinstance(value, Tensor):  # containers hold a row for each row given
            value = value.expand(query.rows, *value.shape[1:])
        values = {query.free[0]: value}
        e = query.evaluate(values)
        return Minimum(values, e, True, torch.ones_like(e, dtype=torch.bool), 1)

    def marginalise(self, query: Query) -> FreeEnergy:
        log_z = None if query.masks else query.energy.ability("log_partition", *query.free)
        if log_z is not None:
            value = -query.T * log_z(**query.fixed, T=query.T)
        else:
            distribution = distribution_of(query)
            z = anywhere(distribution).detach()
            z = z.expand(query.rows, *z.shape[1:])
            value = query.evaluate({query.free[0]: z}) + query.T * distribution.log_prob(z)
        return FreeEnergy(check_energies(value.expand(query.rows), query.energy, "F"), "exact")

    @torch.no_grad()
    def sample(self, query: Query, n: int) -> Draws:
        distribution = distribution_of(query)
        alone = (
            distribution.batch_shape[:1] == (1,) and query.rows > 1
        )  # one distribution for all rows
        value = draw(distribution, n * query.rows if alone else n, query.generator)
        value = value.reshape(n, query.rows, *query.space(query.free[0]).shape)
        return Draws({query.free[0]: value}, energies_of(query, {query.free[0]: value}), "exact")


def distribution_of(query: Query, T: float | None = None) -> Distribution:
    """The declared conditional of the free variables, at the question's temperature."""
    conditional: Callable[..., Any] | None = query.energy.ability("conditional", *query.free)
    assert conditional is not None
    given = dict(query.fixed)
    for name, mask in query.masks.items():
        given[name] = query.given[name]
        given["mask"] = mask
    distribution: Distribution = conditional(**given, T=query.T if T is None else T)
    return distribution


def anywhere(distribution: Distribution) -> Tensor:
    """A value of positive probability, as near the mode as is known."""
    try:
        return mode(distribution)
    except NotImplementedError:  # any value will do
        return draw(distribution, 1, torch.Generator().manual_seed(0))[0]


def energies_of(query: Query, values: Mapping[str, Tensor]) -> Tensor:
    """Energies of draws ``(n, B, *event)`` under the question's given, ``(n, B)``."""
    n = next(iter(values.values())).shape[0]
    if query.energy.rows is not None:  # the energy holds values for exactly these rows
        each = [
            query.energy(**query.fixed, **{k: v[i] for k, v in values.items()}) for i in range(n)
        ]
        return check_energies(torch.stack(each).T, query.energy).T
    fixed = {name: v.repeat(n, *(1,) * (v.ndim - 1)) for name, v in query.fixed.items()}
    flat = {name: v.reshape(n * query.rows, *v.shape[2:]) for name, v in values.items()}
    return check_energies(query.energy(**fixed, **flat), query.energy).reshape(n, query.rows)
