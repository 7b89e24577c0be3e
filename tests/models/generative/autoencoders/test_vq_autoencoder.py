"""Codes of a codebook: straight-through gradients, reconstruction, tokens."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from groundstate import VQAutoencoder
from groundstate.learn.rules.codes.penalties import Commitment
from groundstate.nn.blocks.quantise import Quantiser


def ring(n: int = 300) -> np.ndarray:
    t = np.random.default_rng(0).uniform(0, 2 * np.pi, n)
    return np.column_stack([np.cos(t), np.sin(t), np.cos(2 * t)])


def test_the_gradient_goes_straight_through() -> None:
    quantiser = Quantiser(4, 2)
    z = torch.randn(3, 6, requires_grad=True)
    out = quantiser(z)
    assert torch.equal(out, quantiser.nearest(z))
    (g,) = torch.autograd.grad((out * torch.arange(6.0)).sum(), z)
    torch.testing.assert_close(g, torch.arange(6.0).expand(3, 6))
    far = torch.cdist(z.detach().reshape(-1, 2), quantiser.book.detach())
    assert torch.equal(quantiser.index(z).flatten(), far.argmin(1))
    with pytest.raises(ValueError, match="at least 2 vectors"):
        Quantiser(1, 2)


def test_codebook_and_codes_come_together() -> None:
    quantiser = Quantiser(2, 1)
    quantiser.book.data = torch.tensor([[0.0], [1.0]])
    encoder = torch.nn.Sequential(torch.nn.Identity(), quantiser)
    z = torch.tensor([[0.2, 0.9]], requires_grad=True)
    cost = Commitment(0.25)(encoder(z), z, encoder)
    assert float(cost.detach()) == pytest.approx(1.25 * (0.04 + 0.01))
    book, code = torch.autograd.grad(cost.sum(), [quantiser.book, z])
    torch.testing.assert_close(book, torch.tensor([[-0.4], [0.2]]))
    torch.testing.assert_close(code, 0.25 * torch.tensor([[0.4, -0.2]]))


def test_rows_become_whole_numbers_and_come_back() -> None:
    X = ring()
    model = VQAutoencoder(
        4, n_codes=32, hidden_layer_sizes=(32,), max_iter=100, learning_rate_init=5e-3,
        n_iter_no_change=np.inf, random_state=0,
    ).fit(X)  # fmt: skip
    tokens = model.tokens(X)
    assert tokens.shape == (300, 2) and tokens.min() >= 0 and tokens.max() < 32
    assert len(np.unique(tokens)) >= 8  # much of the book is used
    codes = model.codebook_[tokens].reshape(300, 4)
    np.testing.assert_array_equal(codes, model.transform(X))
    np.testing.assert_array_equal(model.inverse_transform(codes), model.reconstruct(X))
    assert np.mean((model.reconstruct(X) - X) ** 2) < 0.1 * X.var()
    drawn, z = model.sample(20, return_latent=True, random_state=0)
    gap = np.abs(z.reshape(-1, 1, 2) - model.codebook_).max(-1).min(1)
    assert drawn.shape == (20, 3) and gap.max() == 0
    with pytest.raises(ValueError, match="must divide"):
        VQAutoencoder(3, code_size=2).fit(X)
