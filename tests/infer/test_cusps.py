"""Scales of a Laplace approximation at the tip of a cone."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.infer.laplace import _without_cusps


def test_a_cone_gets_the_width_at_which_it_has_risen_and_a_parabola_keeps_its_own() -> None:
    steep = torch.tensor([100.0, 3.0, 0.5], dtype=torch.float64)
    calls = []

    def above(u: Tensor, rows: Tensor) -> Tensor:
        calls.append(len(u))
        cone = u[:, 0].abs()
        parabola = 0.5 * (steep * u.square()).sum(1)
        return torch.where(rows == 0, parabola, cone + 0.5 * (steep * u.square())[:, 1:].sum(1))

    centre = torch.zeros(2, 3, dtype=torch.float64)
    seen = torch.stack([steep, steep.clone()])
    seen[1, 0] = 1e12  # what a second derivative says at the tip
    axes = torch.eye(3, dtype=torch.float64).expand(2, 3, 3)
    found = _without_cusps(above, centre, seen, axes, 1.0)
    torch.testing.assert_close(found[0], steep, rtol=0, atol=0)
    torch.testing.assert_close(found[1, 1:], steep[1:], rtol=0, atol=0)
    width = float(found[1, 0] ** -0.5)
    assert 0.5 <= width <= 1.0  # the cone has risen by T/2, and not by more than twice that
    assert calls[:2] == [4, 4]  # all that may be too narrow, in one call for each side
    assert set(calls[2:]) == {1}


def test_wide_scales_are_not_looked_at() -> None:
    def above(u: Tensor, rows: Tensor) -> Tensor:
        raise AssertionError

    c = torch.full((2, 3), 0.9)
    axes = torch.eye(3).expand(2, 3, 3)
    assert torch.equal(_without_cusps(above, torch.zeros(2, 3), c, axes, 1.0), c)
