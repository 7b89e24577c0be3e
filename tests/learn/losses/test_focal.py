"""The focal loss where rows are certain."""

from __future__ import annotations

import math

import pytest
import torch

from groundstate.learn.losses import focal


@pytest.mark.parametrize("gamma", [0.25, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_focal_has_a_slope_where_a_row_is_certain(gamma: float, dtype: torch.dtype) -> None:
    s = torch.tensor([[1e3, 0.0, 0.0], [50.0, 0.0, 0.0]], dtype=dtype, requires_grad=True)
    (slope,) = torch.autograd.grad(focal(s, torch.tensor([0, 0]), gamma=gamma), s)
    assert slope.abs().max() < 1e-6
    z = torch.tensor([1e3, 50.0, -1e3], dtype=dtype, requires_grad=True)
    y = torch.tensor([1.0, 1.0, 0.0], dtype=dtype)
    (slope,) = torch.autograd.grad(focal(z, y, gamma=gamma), z)
    assert slope.abs().max() < 1e-6


def test_focal_of_a_logit_keeps_the_digits_of_the_missing_probability() -> None:
    found = focal(torch.tensor([30.0]), torch.ones(1), gamma=1.0)
    assert float(found) == pytest.approx(math.exp(-60.0), rel=1e-5)
