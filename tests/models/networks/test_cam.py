"""Class activation maps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from groundstate import NeuralClassifier, explain
from groundstate.errors import ShapeError, Unsupported
from groundstate.models.networks.cam import cam, grad_cam, overlay

A = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]], [[0.0, 1.0], [0.0, 1.0]]]])


def gap(k: int, classes: int, bias: bool = True) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(k, classes, bias=bias)]


def test_worked_example() -> None:
    net = nn.Sequential(nn.Identity(), *gap(2, 1, bias=False))
    with torch.no_grad():
        net[3].weight.copy_(torch.tensor([[0.5, -1.0]]))
    assert net(A).item() == 0.75
    found = cam(net, A, 0)
    assert found.tolist() == [[[0.5, 0.0], [1.5, 1.0]]] and found.mean().item() == 0.75
    assert grad_cam(net, A, 0, net[0]).tolist() == [[[0.125, 0.0], [0.375, 0.25]]]
    assert explain.cam is cam and explain.grad_cam is grad_cam


def test_gradients_sum_to_the_weights_and_grad_cam_is_the_positive_part() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Conv2d(6, 5, 3), *gap(5, 4)).double()
    x = torch.randn(3, 1, 10, 9, dtype=torch.float64)
    for c in range(4):
        full, part = cam(net, x, c), grad_cam(net, x, c)
        z = full.shape[1] * full.shape[2]
        torch.testing.assert_close(part, full.clamp_min(0) / z, rtol=1e-6, atol=1e-12)
        score = net(x)[:, c] - net[-1].bias[c]
        torch.testing.assert_close(full.flatten(1).mean(1), score.detach())
    assert cam(net, x, 0, upsample=True).shape == (3, 10, 9)


def test_refusals_name_what_would_work() -> None:
    net = nn.Sequential(nn.Conv2d(1, 2, 2), nn.Flatten(), nn.Linear(8, 3))
    x = torch.randn(2, 1, 3, 3)
    with pytest.raises(Unsupported, match="use grad_cam"):
        cam(net, x, 0)
    assert grad_cam(net, x, 2).shape == (2, 2, 2)
    with pytest.raises(ShapeError, match="c=5 is no class of a network with 3 scores"):
        grad_cam(net, x, 5)
    with pytest.raises(Unsupported, match="no convolution"):
        grad_cam(nn.Linear(3, 2), torch.zeros(1, 3), 0)
    with pytest.raises(Unsupported, match="fitted estimator"):
        cam("net", x, 0)


def test_a_fitted_classifier_shows_where_it_looks() -> None:
    X, y = load_digits(return_X_y=True)
    keep = y < 2
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), *gap(8, 2))
    model = NeuralClassifier(
        net, input_shape=(1, 8, 8), learning_rate_init=0.02, max_iter=20, random_state=0,
        n_iter_no_change=float("inf"),
    ).fit(X[keep] / 16, y[keep])  # fmt: skip
    maps = cam(model, X[keep][:5] / 16, 1)
    assert maps.shape == (5, 8, 8)
    colours = overlay(torch.from_numpy(X[keep][:5]).view(5, 1, 8, 8), maps)
    assert colours.shape == (5, 3, 8, 8) and 0 <= float(colours.min()) <= float(colours.max()) <= 1
    assert np.isfinite(grad_cam(model, X[keep][:5] / 16, 1).numpy()).all()
