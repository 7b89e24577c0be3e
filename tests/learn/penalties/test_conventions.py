"""Penalties in the conventions of others: torch's weight decay, ridge, lasso, MAP."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from groundstate.energy import Energy, Real
from groundstate.learn import (
    L1,
    L2,
    NLL,
    ElasticNet,
    GaussianPrior,
    LaplacePrior,
    Lp,
    Stochastic,
    fit,
    sgd,
)

F64 = torch.float64
N, D = 60, 5


class Line(Energy):
    """½(y − wᵀx − b)² plus a constant: mean loss is half the mean squared error."""

    normalised = frozenset({"y"})

    def __init__(self, bias: bool = False) -> None:
        super().__init__(x=Real(D), y=Real(1))
        self.net = nn.Linear(D, 1, bias=bias).double()
        with torch.no_grad():
            self.net.weight.copy_(torch.linspace(-1, 1, D, dtype=F64)[None])
            if bias:
                self.net.bias.fill_(0.5)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return 0.5 * (y - self.net(x)).square().sum(-1) + 0.5 * math.log(2 * math.pi)


def table() -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(N, D, generator=g, dtype=F64)
    w = torch.tensor([2.0, -1.0, 0.0, 0.0, 0.1], dtype=F64)
    return {"x": x, "y": (x @ w + 0.3 * torch.randn(N, generator=g, dtype=F64))[:, None]}


def learned(penalty: object, epochs: int = 400, **settings: object) -> Tensor:
    energy = Line()
    solver = Stochastic(sgd, lr=0.2, batch_size=None, max_epochs=epochs, tol=None, **settings)  # type: ignore[arg-type]
    fit(energy, table(), NLL(), solver, penalty=penalty)  # type: ignore[arg-type]
    return energy.net.weight.detach()[0]


def test_ridge_closed_form() -> None:
    """MSE + λ‖w‖² is solved by (XᵀX/N + λI)⁻¹Xᵀy/N; here λ = s/N, sklearn's alpha = Nλ = s."""
    from sklearn.linear_model import Ridge

    x, y = table()["x"], table()["y"][:, 0]
    lam = 0.3
    wanted = torch.linalg.solve(x.T @ x / N + lam * torch.eye(D, dtype=F64), x.T @ y / N)
    torch.testing.assert_close(learned(L2(N * lam)), wanted, atol=1e-10, rtol=0)
    peer = Ridge(alpha=N * lam, fit_intercept=False).fit(x.numpy(), y.numpy())
    torch.testing.assert_close(torch.from_numpy(peer.coef_), wanted, atol=1e-10, rtol=0)


def test_weight_decay_of_torch() -> None:
    """J + λ‖w‖² has the gradient 2λw: torch's weight_decay is 2λ, ours s/N with s = 2λN."""
    lam = 0.05

    def decayed(parameters: object, lr: float) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=lr, weight_decay=2 * lam)  # type: ignore[arg-type]

    energy = Line()
    solver = Stochastic(decayed, lr=0.2, batch_size=None, max_epochs=7, tol=None)
    fit(energy, table(), NLL(), solver)
    torch.testing.assert_close(
        learned(L2(2 * lam * N), epochs=7), energy.net.weight.detach()[0], atol=1e-12, rtol=0
    )


def test_lasso_with_exact_zeros() -> None:
    """MSE without ½ plus λ‖w‖₁ is sklearn's lasso with alpha = λ/2; here alpha = s/N."""
    from sklearn.linear_model import Lasso

    x, y = table()["x"].numpy(), table()["y"][:, 0].numpy()
    alpha = 0.2
    peer = Lasso(alpha=alpha, fit_intercept=False, tol=1e-12).fit(x, y)
    found = learned(L1(alpha * N))
    torch.testing.assert_close(found, torch.from_numpy(peer.coef_), atol=1e-8, rtol=0)
    assert int((found == 0).sum()) == int((peer.coef_ == 0).sum()) >= 2
    kinked = learned(L1(alpha * N), prox=False)  # subgradient steps hover about zero
    assert int((kinked == 0).sum()) == 0 and float((kinked - found).abs().max()) < 0.1


def test_elastic_net_of_sklearn() -> None:
    from sklearn.linear_model import ElasticNet as Peer

    x, y = table()["x"].numpy(), table()["y"][:, 0].numpy()
    peer = Peer(alpha=0.3, l1_ratio=0.4, fit_intercept=False, tol=1e-12).fit(x, y)
    found = learned(ElasticNet(0.3 * N, 0.4))
    torch.testing.assert_close(found, torch.from_numpy(peer.coef_), atol=1e-8, rtol=0)


@pytest.mark.parametrize("lam", [0.5, 1.0, 3.0])
def test_one_dimension(lam: float) -> None:
    """(θ−a)² + λ|θ| is 0 iff |a| ≤ λ/2, else a ∓ λ/2; (θ−a)² + λθ² is a/(1+λ)."""
    a = torch.tensor([-3.0, -lam / 2, 0.0, 0.99 * lam / 2, 1.01 * lam / 2, 4.0], dtype=F64)
    # a proximal step is on ½(θ−a)², so λ/2 and λ are the strengths
    lasso = L1(lam / 2).prox_of(a, 1.0)
    assert (lasso == 0).tolist() == (a.abs() <= lam / 2).tolist()
    torch.testing.assert_close(lasso[-1], a[-1] - lam / 2)
    torch.testing.assert_close(L2(lam).prox_of(a, 1.0), a / (1 + lam))
    torch.testing.assert_close(Lp(lam / 2, 2.0).prox_of(a, 1.0), a / (1 + lam))
    torch.testing.assert_close(Lp(lam / 2, 1.0).prox_of(a, 1.0), lasso)


def test_laplace_prior_variances() -> None:
    """Density (λ/2)e^{−λ|θ|}, variance 2/λ²."""
    wanted = {0.5: 8.0, 1.0: 2.0, 2.0: 0.5, 3.0: 2 / 9}
    for lam, variance in wanted.items():
        distribution = L1(lam).prior()
        assert float(distribution.variance) == pytest.approx(variance, rel=1e-6)
        density = float(distribution.log_prob(torch.tensor(0.7)).exp())
        assert density == pytest.approx(lam / 2 * math.exp(-lam * 0.7), rel=1e-6)


def test_map_strengths() -> None:
    """λ_sum is 1/(2τ²) for a Gaussian and 1/b for a Laplace prior; λ_mean = λ_sum/N."""
    w = torch.tensor([1.0, -2.0], dtype=F64)
    assert float(GaussianPrior(4.0).value_of(w)) == pytest.approx(float(w.square().sum()) / 8)
    assert float(LaplacePrior(0.5).value_of(w)) == pytest.approx(float(w.abs().sum()) * 2)
    tau2 = 0.02
    x, y = table()["x"], table()["y"][:, 0]
    posterior = torch.linalg.solve(x.T @ x + torch.eye(D, dtype=F64) / tau2, x.T @ y)
    torch.testing.assert_close(learned(GaussianPrior(tau2)), posterior, atol=1e-10, rtol=0)


@pytest.mark.parametrize("penalty", [L2(0.0), L1(0.0), Lp(0.0, 1.5), ElasticNet(0.0)])
def test_strength_zero_changes_nothing(penalty: object) -> None:
    torch.testing.assert_close(learned(penalty, 20), learned(None, 20), atol=1e-14, rtol=0)


def test_biases_and_norms_are_left_alone() -> None:
    energy = Line(bias=True)
    for penalty in (L2(3.0), L1(3.0), Lp(3.0, 1.5), ElasticNet(3.0)):
        energy.zero_grad()
        penalty(energy).backward()
        assert energy.net.bias.grad is None or float(energy.net.bias.grad) == 0.0
        assert bool((energy.net.weight.grad != 0).any())


def test_one_meaning_of_l2_in_closed_forms_networks_and_estimators() -> None:
    """λ/2‖θ‖² on the summed loss, whoever lowers it."""
    from sklearn.linear_model import LogisticRegression as Peer
    from sklearn.linear_model import Ridge as PeerRidge

    from groundstate import LogisticRegression, MLPRegressor, Ridge
    from groundstate.energy import LinearEnergy, SquaredEnergy
    from groundstate.learn import LBFGS, Closed, Naive, Newton, SoftMin

    s, data = 7.0, table()
    x, y = data["x"].numpy(), data["y"][:, 0].numpy()
    wanted = PeerRidge(alpha=s).fit(x, y).coef_
    for solver in (None, Closed(), LBFGS(tol=1e-9)):
        energy = SquaredEnergy(D).double()
        fit(energy, data, Naive(), solver, penalty=L2(s))
        torch.testing.assert_close(energy.W[0], torch.from_numpy(wanted), atol=1e-6, rtol=0)
    torch.testing.assert_close(
        torch.from_numpy(Ridge(alpha=s).fit(x, y).coef_), torch.from_numpy(wanted)
    )
    # a network without hidden units is ridge regression: scikit-learn's alpha is λ with all rows
    net = MLPRegressor(hidden_layer_sizes=(), alpha=s, solver="lbfgs", tol=1e-9, max_iter=2000).fit(
        x, y
    )
    torch.testing.assert_close(
        torch.from_numpy(net.coefs_[0][:, 0]).double(), torch.from_numpy(wanted), atol=1e-3, rtol=0
    )
    # C = 1/λ on θ; the two rows ±θ/2 of W have half its square
    labels = (y > 0).astype(int)
    peer = Peer(C=1 / s, tol=1e-10, max_iter=1000).fit(x, labels)
    both = {"x": data["x"], "y": torch.from_numpy(labels)}
    for softmin in (LBFGS(tol=1e-9), Newton(tol=1e-9)):
        linear = LinearEnergy(D, 2).double()
        fit(linear, both, SoftMin(), softmin, penalty=L2(2 * s))
        theta = (linear.W[1] - linear.W[0]).detach()
        torch.testing.assert_close(theta, torch.from_numpy(peer.coef_[0]), atol=1e-6, rtol=0)
    ours = LogisticRegression(C=1 / s, tol=1e-8).fit(x, labels)
    torch.testing.assert_close(
        torch.tensor(ours.coef_[0]).double(), torch.from_numpy(peer.coef_[0]), atol=1e-6, rtol=0
    )
