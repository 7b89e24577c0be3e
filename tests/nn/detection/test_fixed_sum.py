"""Sums of whole numbers: right, the same in every order, and honest about what is not finite."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.nn.detection.test_roi import regions
from torch import Tensor

from groundstate.nn.detection import roi, roi_triton
from groundstate.nn.detection.fixed_sum import fixed_sum
from groundstate.nn.detection.roi import roi_pool


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_sums_are_right_in_every_order(kind: torch.dtype, scale: float) -> None:
    g = torch.Generator().manual_seed(0)
    values = (scale * torch.randn(5000, generator=g, dtype=torch.float64)).to(kind)
    place = torch.randint(-1, 40, (5000,), generator=g)
    exact = torch.zeros(41, dtype=torch.float64)
    exact.index_add_(0, torch.where(place < 0, 40, place), values.double())
    found = fixed_sum(values, place, 40)
    assert found.dtype == kind
    torch.testing.assert_close(found, exact[:40].to(kind), rtol=2**-7 if kind == torch.bfloat16 else 1e-6,
                               atol=scale * 1e-9)  # fmt: skip
    for seed in range(3):
        order = torch.randperm(5000, generator=torch.Generator().manual_seed(seed))
        assert torch.equal(found, fixed_sum(values[order], place[order], 40))


def test_largest_sums_do_not_overflow() -> None:
    values = torch.full((2**15,), torch.finfo(torch.float32).max / 2**15)
    found = fixed_sum(values, torch.zeros(len(values), dtype=torch.int64), 1)
    torch.testing.assert_close(found, values[:1] * 2**15, rtol=1e-6, atol=0)
    tiny = torch.full((3,), 5e-324, dtype=torch.float64)
    assert fixed_sum(tiny, torch.zeros(3, dtype=torch.int64), 1).item() == 1.5e-323
    assert fixed_sum(torch.zeros(2), torch.zeros(2, dtype=torch.int64), 2).tolist() == [0, 0]
    assert fixed_sum(torch.zeros(0), torch.zeros(0, dtype=torch.int64), 2).tolist() == [0, 0]


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_finite_is_not_hidden(bad: float) -> None:
    found = fixed_sum(torch.tensor([1.0, bad]), torch.tensor([0, -1]), 2)
    assert found.isnan().all()


def test_gradients_of_the_kernel_are_those_of_the_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = torch.tensor(regions(12, 2), dtype=torch.float64)
    maps = torch.randn(2, 3, 13, 11, dtype=torch.float64, generator=torch.manual_seed(0))

    def both() -> tuple[Tensor, Tensor]:
        given = maps.clone().requires_grad_()
        out = roi_pool(given, boxes, (3, 4), 0.125)
        (out * torch.randn(out.shape, generator=torch.manual_seed(1))).sum().backward()
        assert given.grad is not None
        return out.detach(), given.grad

    def kernel(pixels: Tensor, image: Tensor, corners: Tensor, size: Any) -> tuple[Tensor, Tensor]:
        """Values, and the pixel of the batch that has each, -1 for none."""
        number = torch.arange(2 * 13 * 11).view(2, 13, 11)
        first = torch.full(loops[0].shape, -1, dtype=torch.int32)
        for r, c, p, q in torch.cartesian_prod(*map(torch.arange, first.shape)).tolist():
            hits = number[image[r]][maps[image[r], c] == loops[0][r, c, p, q]]
            if len(hits):
                first[r, c, p, q] = hits[0]
        return loops[0].clone(), first

    loops = both()
    monkeypatch.setattr(roi, "fused", lambda maps: True)
    monkeypatch.setattr(roi_triton, "pool", kernel)
    torch.testing.assert_close(loops, both(), rtol=1e-12, atol=1e-12)
