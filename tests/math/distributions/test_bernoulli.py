"""Many bits at once: their chances, independence of neighbours, and repeatability."""

from __future__ import annotations

import numpy as np
import torch

from groundstate.math.distributions.bernoulli_numba import draw_bits


def test_bits_follow_their_logits_and_not_each_other() -> None:
    a = torch.randn(700, 600, generator=torch.Generator().manual_seed(1)) * 3
    bits = draw_bits(a, 1, torch.Generator().manual_seed(0))[0]
    again = draw_bits(a, 1, torch.Generator().manual_seed(0))[0]
    assert set(bits.unique().tolist()) == {0.0, 1.0} and torch.equal(bits, again)
    p = torch.sigmoid(a.double()).numpy().ravel()
    z = (bits.double().numpy().ravel() - p) / np.sqrt(p * (1 - p))
    part = np.digitize(p, np.linspace(0, 1, 11)[1:-1])
    for c in range(10):
        gap = (bits.numpy().ravel() - p)[part == c]
        assert abs(gap.sum()) < 4.5 * np.sqrt((p * (1 - p))[part == c].sum())
    flat = np.clip(z, -5, 5)
    for lag in (1, 2, 16, 2048, 4096):  # 2048: the two numbers of one word
        assert abs((flat[lag:] * flat[:-lag]).mean()) < 5 * flat.var() / np.sqrt(len(flat))


def test_certain_bits() -> None:
    a = torch.full((300, 300), 100.0)
    a[:, ::2] = -100.0
    assert torch.equal(draw_bits(a, 1, torch.Generator())[0], (a > 0).float())
