r"""Gradients against central differences, :math:`(f(v + h) - f(v - h))/2h`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.compute.display import Displayed
from groundstate.energy.check import Mismatch
from groundstate.errors import Unsupported

MOST = 200  # numbers that are checked one by one; of more, along random directions
JUMP = 1e-3  # relative change of the one-sided slopes that says: a kink


@dataclass
class GradientReport(Displayed):
    """Largest relative error of every gradient, and where a kink was too near to say.

    Attributes
    ----------
    errors : name to largest :math:`|g - \\hat g|/\\max(1, |g|, |\\hat g|)`
    kinks : (name, index) of numbers, or (name, direction), that were left out
    """

    errors: dict[str, float] = field(default_factory=dict)
    kinks: list[tuple[str, int]] = field(default_factory=list)

    @property
    def worst(self) -> float:
        return max(self.errors.values(), default=0.0)


def gradcheck(
    f: Callable[..., Tensor],
    inputs: Mapping[str, Tensor],
    wrt: Sequence[str] = ("x", "y", "z", "theta"),
    *,
    gradient: Callable[..., Mapping[str, Tensor]] | None = None,
    rtol: float = 1e-6,
    n_directions: int = 20,
    seed: int = 0,
) -> GradientReport:
    r"""Compare gradients of :math:`\sum f` with central differences in float64.

    The step is :math:`h = 10^{-6}\max(1, |v|)` of every number v. Where the two one-sided slopes
    disagree, a kink lies within h: such numbers are left out and reported. More than 200 numbers of
    one variable are checked along random directions.

    Parameters
    ----------
    f : an energy, a module or a function; called with ``inputs`` by name, its values are summed
    inputs : name to tensor
    wrt : names of inputs, and "theta" for the parameters of a module; those absent or not floating
        are skipped
    gradient : what to check: ``gradient(**inputs)`` gives name to gradient (parameters under their
        own names); None checks autograd
    rtol : allowed relative error
    n_directions : random directions per large variable
    seed : of the directions

    Returns
    -------
    GradientReport ; raises ``Mismatch`` at an error above ``rtol``

    Examples
    --------
    >>> report = gradcheck(lambda x: (x**3).sum(1), {"x": torch.tensor([[1.0, 2.0]])}, ("x",))
    >>> report.worst < 1e-8, report.kinks
    (True, [])
    """
    function = deepcopy(f).double() if isinstance(f, nn.Module) else f
    values = {n: v.detach().double() if v.is_floating_point() else v for n, v in inputs.items()}
    leaves = {
        n: values[n].clone().requires_grad_()
        for n in wrt
        if n in values and values[n].is_floating_point()
    }
    parameters: dict[str, Tensor] = {}
    if "theta" in wrt and isinstance(function, nn.Module):
        parameters = {n: p for n, p in function.named_parameters() if p.requires_grad}
    if not leaves and not parameters:
        raise Unsupported(
            f"there is nothing to differentiate: wrt={tuple(wrt)}, floating inputs are "
            f"{[n for n, v in values.items() if v.is_floating_point()]}"
        )
    claimed = _autograd(function, values, leaves, parameters)
    if gradient is not None:
        given = gradient(**values)
        claimed = {n: given[n].detach().double() for n in claimed if n in given}
    report, generator = GradientReport(), torch.Generator().manual_seed(seed)
    for name, g in claimed.items():
        place = parameters[name].data if name in parameters else values[name].clone()
        moved = values if name in parameters else {**values, name: place}

        def total(moved: Mapping[str, Tensor] = moved) -> Tensor:
            with torch.no_grad():
                return function(**moved).sum()

        _compare(name, g, place, total, report, generator, n_directions)
        if not report.errors[name] <= rtol:
            raise Mismatch(
                f"the gradient in {name!r} is wrong: its relative error against central differences "
                f"is {report.errors[name]:.3g}, allowed {rtol:.0e}"
            )
    return report


def _autograd(
    f: Callable[..., Any],
    values: Mapping[str, Tensor],
    leaves: Mapping[str, Tensor],
    parameters: Mapping[str, Tensor],
) -> dict[str, Tensor]:
    named = {**leaves, **parameters}
    with torch.enable_grad():
        total = f(**{**values, **leaves}).sum()
    if not total.requires_grad:
        return {n: torch.zeros_like(v) for n, v in named.items()}
    grads = torch.autograd.grad(total, list(named.values()), allow_unused=True)
    return {n: torch.zeros_like(named[n]) if g is None else g for n, g in zip(named, grads)}


def _compare(
    name: str,
    g: Tensor,
    place: Tensor,
    total: Callable[[], Tensor],
    report: GradientReport,
    generator: torch.Generator,
    n_directions: int,
) -> None:
    size, worst = place.numel(), 0.0
    h = 1e-6 * place.abs().clamp_min(1.0)
    middle = float(total())
    for i, d in _directions(place, generator, n_directions):
        step = h * d
        scale = 1e-6 if size > MOST else float(step.abs().max())
        with _shifted(place, step):
            up = float(total())
        with _shifted(place, -step):
            down = float(total())
        truth = (up - down) / (2 * scale)
        ahead, behind = (up - middle) / scale, (middle - down) / scale
        noise = 1e-15 * max(1.0, abs(middle)) / scale  # of rounding in one-sided slopes
        if abs(ahead - behind) > JUMP * max(1.0, abs(truth)) + 8 * noise:
            report.kinks.append((name, i))
            continue
        claimed = float((g * step).sum()) / scale
        worst = max(worst, abs(claimed - truth) / max(1.0, abs(claimed), abs(truth)))
    report.errors[name] = worst


def _directions(place: Tensor, generator: torch.Generator, n: int) -> Iterator[tuple[int, Tensor]]:
    if place.numel() <= MOST:
        for i in range(place.numel()):
            d = torch.zeros_like(place)
            d.view(-1)[i] = 1.0
            yield i, d
        return
    for i in range(n):
        d = torch.randn(place.shape, generator=generator, dtype=place.dtype)
        yield i, d.to(place.device)


@contextmanager
def _shifted(place: Tensor, step: Tensor) -> Iterator[None]:
    kept = place.clone()
    place.add_(step)
    try:
        yield
    finally:
        place.copy_(kept)


__all__ = ["GradientReport", "Mismatch", "gradcheck"]
