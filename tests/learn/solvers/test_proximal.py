"""Penalties with a kink: the default choice ends at the optimum, or warns that it did not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet as PeerNet
from sklearn.linear_model import Lasso as PeerLasso
from torch import Tensor

from groundstate.energy import GLMEnergy, LinearEnergy, SquaredEnergy
from groundstate.errors import NotConverged, SeparationWarning, Unsupported
from groundstate.learn import (
    L1,
    L2,
    LBFGS,
    ElasticNet,
    Lp,
    Naive,
    Proximal,
    SoftMin,
    SumPenalty,
    fit,
)

F64 = torch.float64


def rows(n: int = 150, d: int = 8) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(n, d, generator=g, dtype=F64)
    y = x[:, :2] @ torch.tensor([[2.0], [-1.0]], dtype=F64)
    return {"x": x, "y": y + 0.1 * torch.randn(n, 1, generator=g, dtype=F64)}


def off(energy: SquaredEnergy, data: dict[str, Tensor], penalty: L1 | ElasticNet) -> float:
    """How far the optimality conditions are from holding."""
    energy.zero_grad()
    Naive()(energy, data).loss.mean().backward()
    return max(
        float(penalty.distance(energy, 1 / len(data["x"]))), float(energy.b.grad.abs().max())
    )


def test_the_default_choice_reaches_the_lasso() -> None:
    data = rows()
    peer = PeerLasso(alpha=20.0 / 150, tol=1e-12).fit(data["x"], data["y"][:, 0])
    for solver, near in ((None, 1e-3), (Proximal(), 2e-6)):
        energy = SquaredEnergy(8).double()
        history = fit(energy, data, Naive(), solver, penalty=L1(20.0))
        assert history.converged
        np.testing.assert_allclose(energy.W.detach()[0], peer.coef_, atol=near)
        assert int((energy.W == 0).sum()) == 6
    assert off(energy, data, L1(20.0)) <= 1e-6


def test_the_default_choice_is_proximal_where_nothing_special_is_known() -> None:
    data = rows()
    counts = {"x": data["x"], "y": data["y"].abs().round()}
    energy = GLMEnergy(8, family="poisson").double()
    history = fit(energy, counts, Naive(), penalty=L1(20.0))
    assert history.solver == "Proximal" and history.converged
    assert 0 < int((energy.W == 0).sum()) < 8
    energy.zero_grad()
    Naive()(energy, counts).loss.mean().backward()
    assert float(L1(20.0).distance(energy, 1 / 150)) <= 1e-6


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_other_penalties_and_badly_scaled_columns(scale: float) -> None:
    data = rows()
    data["x"][:, 3] *= scale
    energy = SquaredEnergy(8).double()
    fit(energy, data, Naive(), Proximal(), penalty=ElasticNet(30.0, 0.4))
    peer = PeerNet(alpha=0.2, l1_ratio=0.4, tol=1e-12).fit(data["x"], data["y"][:, 0])
    np.testing.assert_allclose(energy.W.detach()[0], peer.coef_, atol=1e-5)
    both = SquaredEnergy(8).double()  # a sum whose parts meet different parameters
    penalty = SumPenalty(L1(20.0, select="W"), L2(5.0, select="b"))
    assert fit(both, data, Naive(), penalty=penalty).solver == "Proximal"


def test_weights_are_repetitions() -> None:
    data, weight = rows(60), torch.arange(60) % 3
    twice = {k: v.repeat_interleave(weight, 0) for k, v in data.items()}
    a, b = SquaredEnergy(8).double(), SquaredEnergy(8).double()
    fit(a, data, Naive(), Proximal(), penalty=L1(5.0), sample_weight=weight.double())
    fit(b, twice, Naive(), Proximal(), penalty=L1(5.0))
    torch.testing.assert_close(a.W, b.W, atol=1e-6, rtol=0)


def test_networks_and_class_scores_get_exact_zeros() -> None:
    data = rows(80, 4)
    net = SquaredEnergy(4, 1, (6,), generator=torch.Generator().manual_seed(0)).double()
    history = fit(net, {"x": data["x"], "y": data["y"]}, Naive(), Proximal(3000, 1e-2),
                  penalty=L1(3.0))  # fmt: skip
    assert history.objective[-1] < history.objective[0]
    assert any(bool((p == 0).any()) for p in net.parameters() if p.ndim == 2)
    linear = LinearEnergy(4, 3).double()
    labels = {"x": data["x"], "y": torch.arange(80) % 3}
    reference = LinearEnergy(4, 3).double()
    fit(reference, labels, SoftMin(), penalty=L1(2.0))
    fit(linear, labels, SoftMin(), Proximal(tol=1e-9), penalty=L1(2.0))
    torch.testing.assert_close(linear.W, reference.W, atol=1e-6, rtol=0)


def test_a_stop_before_the_end_warns() -> None:
    data = rows()
    with pytest.warns(NotConverged, match="raise max_iter"):
        fit(SquaredEnergy(8).double(), data, Naive(), Proximal(3), penalty=L1(1.0))
    twice = SumPenalty(L1(10.0), L1(10.0))  # no simple proximal map: the trainer takes it
    with pytest.warns(NotConverged, match="pass a solver"):
        fit(SquaredEnergy(8).double(), data, Naive(), penalty=twice)
    assert issubclass(SeparationWarning, NotConverged)
    assert issubclass(NotConverged, ConvergenceWarning)


def test_reasons() -> None:
    data = rows()
    for penalty, reason in (
        (None, "no penalty with a kink"),
        (L2(1.0), "no penalty with a kink"),
        (SumPenalty(L1(1.0), Lp(1.0, 1.5)), "no simple proximal map"),
    ):
        with pytest.raises(Unsupported, match=reason):
            fit(SquaredEnergy(8).double(), data, Naive(), Proximal(), penalty=penalty)
    with pytest.raises(Unsupported, match="has kinks.*Proximal"):
        fit(SquaredEnergy(8).double(), data, Naive(), LBFGS(), penalty=L1(1.0))
