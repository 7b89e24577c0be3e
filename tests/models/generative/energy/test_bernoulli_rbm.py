"""BernoulliRBM: exact numbers of a small machine, learning, and scikit-learn's surface."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from sklearn.neural_network import BernoulliRBM as PeerRBM

from groundstate import BernoulliRBM
from groundstate.energy import BilinearEnergy
from groundstate.errors import Unsupported
from groundstate.learn import BoltzmannSGD, PersistentCD, fit, sgd
from groundstate.learn.callbacks import Callback, Run
from groundstate.learn.solvers.latent import boltzmann


def bars_and_stripes(n: int = 3) -> np.ndarray:
    """All bars and all stripes of an n × n picture, each once."""
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    bars = np.repeat(bits[:, :, None], n, axis=2).reshape(len(bits), -1)
    stripes = np.repeat(bits[:, None, :], n, axis=1).reshape(len(bits), -1)
    return np.unique(np.vstack([bars, stripes]), axis=0).astype(float)


def small() -> BernoulliRBM:
    """W=[[1,−1],[.5,2]], b=(.1,−.2), c=(.3,−.4)."""
    model = BernoulliRBM(2, n_iter=1, random_state=0).fit(np.eye(2))
    with torch.no_grad():
        model.energy_.W.copy_(torch.tensor([[1.0, -1.0], [0.5, 2.0]]))
        model.energy_.b.copy_(torch.tensor([0.1, -0.2]))
        model.energy_.c.copy_(torch.tensor([0.3, -0.4]))
    return model


STATES = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


def test_worked_example() -> None:
    model = small()
    F = [-1.367370, -2.755001, -1.861426, -2.890466]
    np.testing.assert_allclose(model.energy(STATES), F, atol=1e-6)
    p = np.exp(model.log_likelihood(STATES))
    np.testing.assert_allclose(p, [0.089042, 0.356643, 0.145935, 0.408381], atol=1e-6)
    assert p.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(model.transform(STATES[2:3]), [[0.785835, 0.197816]], atol=1e-6)
    both = model.infer({}, ("x", "z"), "sample", n=4000, random_state=0)["x"][:, 0]
    share = [(both == s).all(1).mean() for s in STATES]
    np.testing.assert_allclose(share, p, atol=0.04)


def test_learns_bars_and_stripes() -> None:
    X = bars_and_stripes()
    start = BernoulliRBM(12, learning_rate=1e-9, n_iter=1, random_state=0).fit(X)
    assert start.log_likelihood(X).mean() == pytest.approx(-9 * np.log(2), abs=0.05)
    model = BernoulliRBM(16, learning_rate=0.2, batch_size=140, n_iter=1000, random_state=0)
    model.fit(np.repeat(X, 20, axis=0))
    assert -3.8 < model.log_likelihood(X).mean() < -np.log(14)
    assert model.score_samples(X).mean() > start.score_samples(X).mean()


def test_a_step_is_the_gradient_of_the_rule() -> None:
    x = torch.from_numpy(bars_and_stripes())
    weight = torch.linspace(0.0, 2.0, len(x), dtype=torch.float64)
    energy = BilinearEnergy(9, 4, scale=0.5).double()
    rule = PersistentCD(n_chains=6)
    rule(energy, {"x": x}, generator=torch.Generator().manual_seed(0))  # makes the chains
    twin = copy.deepcopy(energy)
    solver = BoltzmannSGD(optimizer=sgd, lr=0.1, batch_size=None, max_epochs=1)
    history = fit(twin, {"x": x}, rule, solver, sample_weight=weight, random_state=0)
    chains = rule.source.chains["x"]
    share = weight / weight.sum()
    loss = -energy.over_z(x) @ share + energy.over_z(chains).mean()
    for p, q, g in zip(
        energy.parameters(),
        twin.parameters(),
        torch.autograd.grad(loss, list(energy.parameters())),
        strict=True,
    ):
        torch.testing.assert_close(q, p - 0.1 * g)
    assert history.objective == pytest.approx([float(loss.detach())])
    assert history.positive[0] - history.contrast[0] != 0


def test_chains_of_the_fast_solver_sample_the_model() -> None:
    model = small()
    energy = model.energy_
    rule = PersistentCD(n_chains=4000)
    x = torch.from_numpy(STATES)
    solver = BoltzmannSGD(optimizer=sgd, lr=1e-12, batch_size=None, max_epochs=25, tol=None)
    fit(energy, {"x": x}, rule, solver, random_state=0)
    visited = rule.source.chains["x"].numpy()
    share = [(visited == s).all(1).mean() for s in STATES]
    np.testing.assert_allclose(share, [0.089042, 0.356643, 0.145935, 0.408381], atol=0.03)


def test_as_good_as_the_peer() -> None:
    X = bars_and_stripes()
    settings = {"n_components": 8, "learning_rate": 0.05, "batch_size": 14, "n_iter": 400}
    ours = BernoulliRBM(**settings, random_state=0).fit(X)
    peer = PeerRBM(**settings, random_state=0).fit(X)
    model = BernoulliRBM(8, n_iter=1, random_state=0).fit(X)
    with torch.no_grad():
        model.energy_.W.copy_(torch.from_numpy(peer.components_.T))
        model.energy_.b.copy_(torch.from_numpy(peer.intercept_visible_))
        model.energy_.c.copy_(torch.from_numpy(peer.intercept_hidden_))
    assert ours.log_likelihood(X).mean() > model.log_likelihood(X).mean() - 0.35
    # and the same answers from the same parameters
    np.testing.assert_allclose(model.transform(X), peer.transform(X), rtol=1e-9)


def test_attributes() -> None:
    X = bars_and_stripes()
    model = BernoulliRBM(5, batch_size=4, n_iter=2, random_state=0).fit(X)
    assert model.components_.shape == (5, 9) and model.n_iter_ == 2
    assert model.intercept_hidden_.shape == (5,) and model.intercept_visible_.shape == (9,)
    assert model.h_samples_.shape == (4, 5) and model.v_samples_.shape == (4, 9)
    assert model.get_feature_names_out()[0] == "bernoullirbm0"
    assert set(np.unique(model.v_samples_)) <= {0.0, 1.0}
    np.testing.assert_array_equal(model.components_.T, model.energy_.W.detach().numpy())


def test_gibbs_and_pseudo_likelihood() -> None:
    model = small()
    v = np.repeat(STATES[2:3], 20_000, axis=0)
    once = model.gibbs(v, random_state=0)
    assert once.dtype == bool and once.shape == v.shape
    h = np.array([[i, j] for i in (0.0, 1.0) for j in (0.0, 1.0)])
    p = model.transform(STATES[2:3])[0]
    weight = np.prod(np.where(h > 0, p, 1 - p), axis=1)
    up = 1 / (1 + np.exp(-(h @ np.array([[1.0, 0.5], [-1.0, 2.0]]) + [0.1, -0.2])))
    np.testing.assert_allclose(once.mean(0), weight @ up, atol=0.01)
    F = model.energy(STATES)
    flips = {0: (F[2], F[1]), 1: (F[3], F[0]), 2: (F[0], F[3]), 3: (F[1], F[2])}
    for i, score in enumerate(model.score_samples(STATES)):
        allowed = [-2 * np.log1p(np.exp(F[i] - other)) for other in flips[i]]
        assert min(abs(score - a) for a in allowed) < 1e-9


def test_partial_fit_goes_on_with_its_chains() -> None:
    X = bars_and_stripes()
    model, again = (BernoulliRBM(6, learning_rate=1.0, batch_size=14, random_state=0) for _ in "ab")
    for _ in range(300):
        model.partial_fit(X)
        again.partial_fit(X)
    assert model.n_steps_ == 300
    assert model.log_likelihood(X).mean() > -5.7
    np.testing.assert_array_equal(again.components_, model.components_)
    fitted = BernoulliRBM(6, n_iter=1, random_state=0).fit(X)
    before = fitted.components_.copy()
    assert not np.array_equal(fitted.partial_fit(X).components_, before)


def test_exact_likelihood_of_a_large_machine_names_the_estimators() -> None:
    X = np.random.default_rng(0).integers(0, 2, (30, 25)).astype(float)
    model = BernoulliRBM(30, n_iter=1, random_state=0).fit(X)
    with pytest.raises(Unsupported, match="Annealed"):
        model.log_likelihood(X)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_steps_are_the_same_steps(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, weighted: bool
) -> None:
    x = torch.from_numpy(bars_and_stripes()).to(dtype)
    x[0] = torch.linspace(0, 1, 9)  # shares of one are rows too
    weight = torch.linspace(0.5, 2.0, len(x), dtype=dtype) if weighted else None
    found = []
    for small in (boltzmann.SMALL, 0):
        monkeypatch.setattr(boltzmann, "SMALL", small)
        energy = BilinearEnergy(9, 700, scale=0.5).to(dtype)
        rule = PersistentCD(n_chains=5, k=2)
        solver = BoltzmannSGD(optimizer=sgd, lr=0.1, batch_size=4, max_epochs=3, tol=None)
        history = fit(energy, {"x": x}, rule, solver, sample_weight=weight, random_state=0)
        found.append((*energy.parameters(), rule.source.chains["x"], energy.W.grad, history))
    *one, first = found[0]
    *other, second = found[1]
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b)
    np.testing.assert_allclose(first.objective, second.objective, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(first.contrast, second.contrast, rtol=1e-4)


def test_looking_at_steps_changes_nothing() -> None:
    class Looks(Callback):
        def on_step(self, run: Run) -> bool:
            return False

    X = bars_and_stripes()
    settings = {"n_components": 6, "batch_size": 4, "n_iter": 5, "random_state": 0}
    plain = BernoulliRBM(**settings).fit(X)
    watched = BernoulliRBM(**settings, callbacks=[Looks()]).fit(X)
    np.testing.assert_array_equal(plain.components_, watched.components_)
    np.testing.assert_array_equal(plain.v_samples_, watched.v_samples_)
    assert plain.history_.objective == watched.history_.objective
