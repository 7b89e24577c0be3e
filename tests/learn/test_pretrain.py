"""Learning of a deep network layer by layer, before it sees labels."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch import nn

from groundstate import NeuralClassifier
from groundstate.errors import DataError, ShapeError
from groundstate.learn import pretrain_layers
from groundstate.learn.pretrain import hidden_layers
from groundstate.nn import MLP


def digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order] / 16.0, y[order]


def net(depth: int = 10, width: int = 24) -> MLP:
    return MLP(64, (width,) * depth, 10, "sigmoid", generator=torch.Generator().manual_seed(0))


@pytest.mark.slow
def test_ten_sigmoid_layers_learn_only_after_pretraining() -> None:
    X, y = digits()
    scores = []
    for pretrained in (False, True):
        deep = net()
        if pretrained:
            pretrain_layers(
                deep, X, max_iter=8, level=0.1, learning_rate_init=0.01, batch_size=64,
                random_state=0,
            )  # fmt: skip
        tuned = NeuralClassifier(
            deep, max_iter=30, learning_rate_init=3e-3, batch_size=50, random_state=0,
            n_iter_no_change=np.inf,
        )  # fmt: skip
        scores.append(tuned.fit(X[:300], y[:300]).score(X[300:], y[300:]))
    assert scores[0] < 0.3 and scores[1] > 0.75


def test_machines_are_layers_too() -> None:
    X, y = digits()
    deep = net(2, 64)
    start = [layer[0].weight.detach().clone() for layer in hidden_layers(deep)]
    found = pretrain_layers(
        deep, X, "rbm", max_iter=15, learning_rate_init=0.02, batch_size=32, random_state=0
    )
    assert len(found) == 2
    assert all(
        not torch.equal(a, layer[0].weight)
        for a, layer in zip(start, hidden_layers(deep), strict=True)
    )
    codes = torch.from_numpy(X).float()
    with torch.no_grad():
        for layer in hidden_layers(deep):
            codes = layer(codes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        probe = LogisticRegression(max_iter=200).fit(codes[:300], y[:300])
    assert probe.score(codes[300:], y[300:]) > 0.8
    real = MLP(2, (3,), 1, "sigmoid")
    pretrain_layers(real, np.random.default_rng(0).normal(size=(50, 2)), "rbm", max_iter=2)
    with pytest.raises(ValueError, match="method='denoising'"):
        pretrain_layers(MLP(2, (3,), 1, "relu"), np.zeros((4, 2)), "rbm")


def test_only_the_hidden_layers_move_and_a_weight_is_a_repetition() -> None:
    X = np.random.default_rng(0).normal(size=(30, 4))
    nets = [MLP(4, (5, 3), 2, "tanh", generator=torch.Generator().manual_seed(1)) for _ in range(3)]
    for n in nets:
        n.double()
    weight = np.r_[2.0, np.ones(29)]
    pretrain_layers(
        nets[0], X, "autoencoder", max_iter=5, batch_size=100, sample_weight=weight, random_state=0
    )
    pretrain_layers(
        nets[1], np.vstack([X, X[:1]]), "autoencoder", max_iter=5, batch_size=100, random_state=0
    )
    a, b, before = (dict(n.named_parameters()) for n in nets)
    for name in a:
        torch.testing.assert_close(a[name], b[name])
    *hidden, last = [name for name in a if name.endswith("weight")]
    assert torch.equal(a[last], before[last])
    assert all(not torch.equal(a[name], before[name]) for name in hidden)


def test_what_cannot_be_read_is_refused() -> None:
    X = np.zeros((5, 4))
    with pytest.raises(ShapeError, match=r"\(n, 3\)"):
        pretrain_layers(MLP(3, (2,), 1), X)
    with pytest.raises(DataError, match="NaN"):
        pretrain_layers(MLP(4, (2,), 1), np.full((5, 4), np.nan))
    with pytest.raises(ValueError, match="method must be"):
        pretrain_layers(MLP(4, (2,), 1), X, "pca")
    for wrong in (nn.Linear(4, 2), MLP(4, (3, 3), 1, residual=True), MLP(4, (), 1)):
        with pytest.raises(TypeError, match="Sequential of Linear"):
            pretrain_layers(wrong, X)
    plain = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))
    assert len(pretrain_layers(plain, X + 1.0, max_iter=1)) == 1
