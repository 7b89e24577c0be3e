"""A layer of bits above a layer of bits, through rounded products: the bits of the exact ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from torch import Tensor

from groundstate.math.distributions import (
    bernoulli_layer_numba as bits_layer,
)
from groundstate.math.distributions import (
    bernoulli_numba as bits,
)
from groundstate.math.distributions.bernoulli_layer_numba import gibbs_sweep

_BLOCK_OF = njit(lambda seed, b, u: bits._uniforms(seed, b, u))


def uniforms(seed: int, n: int, m: int) -> Tensor:
    """The numbers that belong to a seed, as doubles.  # (n, m)"""
    blocks = [np.empty(bits._BLOCK, np.float32) for _ in range(-(-n * m // bits._BLOCK))]
    for b, u in enumerate(blocks):
        _BLOCK_OF(np.uint64(seed), b, u)
    return torch.from_numpy(np.concatenate(blocks)[: n * m].reshape(n, m)).double()


def chances(x: Tensor, W: Tensor, c: Tensor) -> Tensor:
    return torch.sigmoid(x.double() @ W.double() + c.double())


def case(n: int, d: int, l: int, scale: float, seed: int) -> tuple[Tensor, ...]:
    g = torch.Generator().manual_seed(seed)
    x = (torch.rand(n, d, generator=g) < torch.rand((), generator=g)).float()
    W = scale * torch.randn(d, l, generator=g)
    return x, W, torch.randn(d, generator=g), torch.randn(l, generator=g)


def settled(x: Tensor, W: Tensor, c: Tensor, seed: int) -> Tensor | None:
    out = bits_layer._rounded(x.bfloat16(), W.contiguous(), W.T.contiguous(), c, seed)
    return None if out is None else out > 0


@settings(deadline=None, max_examples=25)
@given(
    n=st.integers(1, 60),
    d=st.integers(1, 300),
    l=st.integers(1, 200),
    scale=st.sampled_from([1e-3, 0.03, 0.3, 3.0]),
    seed=st.integers(0, 2**63 - 1),
)
def test_rounded_products_give_the_bits_of_exact_ones(
    n: int, d: int, l: int, scale: float, seed: int
) -> None:
    x, W, _, c = case(n, d, l, scale, seed % 1000)
    out = settled(x, W, c, seed)
    if out is None:
        assert scale == 3.0
        return
    u, p = uniforms(seed, n, l), chances(x, W, c)
    assert bool(((out == (u < p)) | ((u - p).abs() < 1e-6)).all())


@pytest.mark.parametrize("scale", [0.01, 0.1, 0.4])
def test_the_bound_holds_and_leaves_few_bits_open(scale: float) -> None:
    x, W, _, c = case(200, 500, 300, scale, 0)
    half, shift, reach = bits_layer._reach(W, c)
    assert torch.equal(half, W.bfloat16())  # round to nearest, ties to even, as torch
    rounded = torch.mm(x.bfloat16(), half)
    exact = x.double() @ W.double() + c.double()
    gap = (exact - rounded.double() - shift.double()).abs()
    own = float(bits_layer._ROUNDED) * rounded.double().abs()
    assert bool((gap <= reach.double() + own).all())
    words = rounded.view(torch.uint16).view(-1).numpy()
    out = np.zeros(len(x) * len(c), np.uint16)
    open_bits = bits_layer._settle(
        words, shift.numpy(), reach.numpy(), x.bfloat16().view(torch.uint16).numpy(),
        W.T.contiguous().numpy(), c.numpy(), np.uint64(3), out,
    )  # fmt: skip
    assert open_bits < 0.05 * len(out)


def test_extreme_logits_and_coarse_weights() -> None:
    x = torch.ones(8, 4)
    W = torch.tensor([[300.0, -300.0, 900.0]]).expand(4, 3) + torch.zeros(4, 3)
    out = settled(x, W, torch.tensor([0.0, 0.0, -3595.0]), 1)
    assert out is not None and out[:, 0].all() and not out[:, 1].any()
    assert torch.equal(out[:, 2], uniforms(1, 8, 3)[:, 2] < torch.sigmoid(torch.tensor(5.0)))
    coarse = torch.randn(400, 10, generator=torch.Generator().manual_seed(0)) * 50
    assert settled(torch.ones(8, 400), coarse, torch.zeros(10), 1) is None


@pytest.mark.parametrize("real", [False, True])
def test_sweeps_do_not_depend_on_how_products_are_computed(
    real: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, W, b, c = case(40, 90, 70, 0.2, 1)
    if real:  # chances instead of bits in the first layer
        x = 0.5 * x
    sweeps: list[Any] = []
    ways = ((0, 0, True), (0, 0, False), (0, 2**60, True), (2**60, 0, True))
    for few, many, fast in ways:
        monkeypatch.setattr(bits_layer, "FEW", few)
        monkeypatch.setattr(bits_layer, "MANY", many)
        monkeypatch.setattr(bits_layer, "ROWS", 0)
        monkeypatch.setattr(bits_layer, "multiplies_bfloat16", lambda fast=fast: fast)
        sweeps.append(gibbs_sweep(x, W, b, c, (5, 6)))
    z = uniforms(5, 40, 70) < chances(x, W, c)
    want = uniforms(6, 40, 90) < chances(z.double(), W.T, b)
    for bits_ in sweeps:
        assert bits_.dtype == torch.bool and torch.equal(bits_, want)
