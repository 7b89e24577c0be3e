"""BernoulliRBM: exact numbers of a small machine, learning, and scikit-learn's surface."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.neural_network import BernoulliRBM as PeerRBM

from groundstate import BernoulliRBM
from groundstate.energy import BilinearEnergy
from groundstate.errors import DataError, Unreliable, Unsupported
from groundstate.learn import NLL, BoltzmannSGD, ContrastiveDivergence, PersistentCD, fit, sgd
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
    p = np.exp(model.score_samples(STATES))
    np.testing.assert_allclose(p, [0.089042, 0.356643, 0.145935, 0.408381], atol=1e-6)
    assert p.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(model.transform(STATES[2:3]), [[0.785835, 0.197816]], atol=1e-6)
    both = model.infer({}, ("x", "z"), "sample", n=4000, random_state=0)["x"][:, 0]
    share = [(both == s).all(1).mean() for s in STATES]
    np.testing.assert_allclose(share, p, atol=0.04)


def test_learns_bars_and_stripes() -> None:
    X = bars_and_stripes()
    start = BernoulliRBM(12, learning_rate=1e-9, n_iter=1, random_state=0).fit(X)
    assert start.score_samples(X).mean() == pytest.approx(-9 * np.log(2), abs=0.05)
    model = BernoulliRBM(16, learning_rate=0.2, batch_size=140, n_iter=1000, random_state=0)
    model.fit(np.repeat(X, 20, axis=0))
    assert -3.8 < model.score_samples(X).mean() < -np.log(14)
    assert model.pseudo_score_samples(X).mean() > start.pseudo_score_samples(X).mean()


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
    assert ours.score_samples(X).mean() > model.score_samples(X).mean() - 0.35
    # and the same answers from the same parameters
    np.testing.assert_allclose(model.transform(X), peer.transform(X), rtol=1e-9)


def test_attributes() -> None:
    X = bars_and_stripes()
    model = BernoulliRBM(5, batch_size=4, n_chains=4, n_iter=2, random_state=0).fit(X)
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
    for i, score in enumerate(model.pseudo_score_samples(STATES)):
        allowed = [-2 * np.log1p(np.exp(F[i] - other)) for other in flips[i]]
        assert min(abs(score - a) for a in allowed) < 1e-9


def test_partial_fit_goes_on_with_its_chains() -> None:
    X = bars_and_stripes()
    model, again = (BernoulliRBM(6, learning_rate=1.0, batch_size=14, random_state=0) for _ in "ab")
    for _ in range(300):
        model.partial_fit(X)
        again.partial_fit(X)
    assert model.n_steps_ == 300
    assert model.score_samples(X).mean() > -5.7
    np.testing.assert_array_equal(again.components_, model.components_)
    fitted = BernoulliRBM(6, n_iter=1, random_state=0).fit(X)
    before = fitted.components_.copy()
    assert not np.array_equal(fitted.partial_fit(X).components_, before)


def test_a_large_machine_is_annealed() -> None:
    rng = np.random.default_rng(0)
    X = (rng.random((60, 25)) < 0.3).astype(float)
    model = BernoulliRBM(19, n_iter=5, random_state=0).fit(X)
    assert model.log_prob_kind_ == "exact"
    exact = float(model.energy_.total().detach())
    found = model.log_partition(n=200, n_temps=300)
    assert abs(found.value - exact) < 4 * found.stderr + 1e-3
    assert found.lower - 4 * found.stderr < exact < found.upper + 4 * found.stderr
    wide = BernoulliRBM(30, n_iter=2, random_state=0).fit(X)
    assert wide.log_prob_kind_ == "estimate"
    scores = wide.score_samples(X)
    np.testing.assert_array_equal(scores, wide.score_samples(X))
    log_z = wide.log_partition(n=500, n_temps=300, random_state=1).value
    np.testing.assert_allclose(scores, -wide.energy(X) - log_z, atol=0.05)
    with pytest.raises(Unsupported, match="pcd"):
        BernoulliRBM(30, method="exact").fit(X)


@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_steps_are_the_same_steps(monkeypatch: pytest.MonkeyPatch, weighted: bool) -> None:
    dtype = torch.float32  # others take the plain steps
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


# --- learning ----------------------------------------------------------------------------


def the_gradient(method: str, k: int = 1, n: int = 1) -> dict[str, torch.Tensor]:
    """Minus the change of θ of the worked machine in one step of rate 1 from rows (1, 1)."""
    energy = small().energy_.double()
    rule = NLL(over="x") if method == "exact" else ContrastiveDivergence(k, over="x")
    x = torch.ones(n, 2, dtype=torch.float64)
    before = {name: p.detach().clone() for name, p in energy.named_parameters()}
    solver = BoltzmannSGD(optimizer=sgd, lr=1.0, batch_size=None, max_epochs=1, tol=None)
    history = fit(energy, {"x": x}, rule, solver, random_state=0)
    assert history.solver == "BoltzmannSGD"
    found = {name: before[name] - p.detach() for name, p in energy.named_parameters()}
    return {**found, "loss": torch.tensor(history.objective[0])}


def test_exact_gradient_of_the_worked_machine() -> None:
    found = the_gradient("exact")
    assert float(found["loss"]) == pytest.approx(0.895556, abs=1e-6)
    stated = torch.tensor([[-0.393017, -0.353115], [-0.261623, -0.085249]], dtype=torch.float64)
    torch.testing.assert_close(found["W"], stated, atol=1e-6, rtol=0)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3)])
def test_exact_statistics_are_the_gradient_of_the_likelihood(shape: tuple[int, int]) -> None:
    energy = BilinearEnergy(*shape, scale=1.0).double()
    x = energy.spaces["x"].draw(20, dtype=torch.float64)
    weight = torch.linspace(0.5, 2, 20, dtype=torch.float64)
    losses = NLL(over="x")(energy, {"x": x}).loss
    wanted = torch.autograd.grad(losses @ weight / weight.sum(), list(energy.parameters()))
    twin = copy.deepcopy(energy)
    solver = BoltzmannSGD(optimizer=sgd, lr=0.1, batch_size=None, max_epochs=1, tol=None)
    history = fit(twin, {"x": x}, NLL(over="x"), solver, sample_weight=weight, random_state=0)
    assert history.objective == pytest.approx([float(losses.detach() @ weight / weight.sum())])
    for p, q, g in zip(energy.parameters(), twin.parameters(), wanted, strict=True):
        torch.testing.assert_close(q, p - 0.1 * g)


@pytest.mark.parametrize(
    ("k", "stated"),
    [(1, (0.571875, 0.779480)), (2, (0.554655, 0.766454)), (5, (0.554310, 0.765031))],
)
def test_contrastive_divergence_from_a_row(k: int, stated: tuple[float, float]) -> None:
    n = 100_000
    found = the_gradient("cd", k, n)
    dreamed = 1 + found["b"].numpy()  # ∂b = mean of x⁻ − mean of x
    np.testing.assert_allclose(dreamed, stated, atol=4 * 0.5 / np.sqrt(n))


def test_nothing_is_learned_from_the_models_own_distribution() -> None:
    model = small()
    weight = torch.from_numpy(np.exp(model.score_samples(STATES)))
    energy = model.energy_.double()
    before = copy.deepcopy(energy)
    solver = BoltzmannSGD(optimizer=sgd, lr=1.0, batch_size=None, max_epochs=1, tol=None)
    x = torch.from_numpy(STATES)
    fit(energy, {"x": x}, NLL(over="x"), solver, sample_weight=weight, random_state=0)
    for p, q in zip(before.parameters(), energy.parameters(), strict=True):
        torch.testing.assert_close(p, q, atol=1e-9, rtol=0)


@pytest.mark.parametrize("method", ["pcd", "cd", "exact"])
def test_weights_are_repetitions_and_options_run(method: str) -> None:
    X = bars_and_stripes()
    weight = np.r_[2.0, np.ones(len(X) - 1)]
    settings = {
        "n_components": 3,
        "n_iter": 4,
        "batch_size": 5,
        "method": method,
        "random_state": 0,
    }
    one = BernoulliRBM(**settings).fit(X, sample_weight=weight)
    two = BernoulliRBM(**settings).fit(np.vstack([X, X[:1]])[::-1])
    np.testing.assert_allclose(one.components_, two.components_, atol=1e-5)
    other = BernoulliRBM(**settings, momentum=0.5, weight_decay=0.1, schedule="constant").fit(X)
    assert np.isfinite(other.score(X)) and not np.allclose(other.components_, one.components_)
    if method != "pcd":
        with pytest.raises(AttributeError, match="pcd"):
            _ = one.v_samples_


# --- the other columns and questions --------------------------------------------------------


def test_values_outside_the_unit_interval_are_refused() -> None:
    with pytest.raises(DataError, match="column 1 holds values from -0.5 to 2"):
        BernoulliRBM(2).fit([[0.0, -0.5], [1.0, 2.0]])
    with pytest.raises(DataError, match="whole numbers"):
        BernoulliRBM(2, visible="categorical").fit([[0.5], [1.0]])
    with pytest.raises(ValueError, match="each of 2 columns"):
        BernoulliRBM(2, visible=["gaussian"]).fit(np.eye(2))


def test_reals_are_fitted_to_two_clusters() -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((400, 1)) < 0.5, -2.0, 2.0) + 0.5 * rng.normal(size=(400, 1))
    model = BernoulliRBM(
        1,
        visible="gaussian",
        sigma=0.5,
        method="exact",
        learning_rate=0.05,
        n_iter=60,
        random_state=0,
    ).fit(X)
    grid = np.linspace(-8, 8, 4001)[:, None]
    assert np.exp(model.score_samples(grid)).sum() * 0.004 == pytest.approx(1.0, abs=1e-6)
    gauss = -0.5 * np.log(2 * np.pi * np.e * X.var())
    assert model.score(X) > gauss + 0.4
    drawn = model.sample(2000, random_state=0)
    assert drawn.std() == pytest.approx(X.std(), rel=0.1)
    scaled = BernoulliRBM(1, visible="gaussian", scale="standard", n_iter=1, random_state=0).fit(X)
    again = BernoulliRBM(1, visible="gaussian", scale="standard", n_iter=1, random_state=0).fit(
        8 * X
    )
    np.testing.assert_allclose(
        scaled.score_samples(X) - np.log(8), again.score_samples(8 * X), atol=1e-5
    )


def rows_with_a_label(n: int = 400) -> np.ndarray:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, n)
    rates = np.array([[0.9, 0.1, 0.1], [0.1, 0.9, 0.1], [0.1, 0.1, 0.9]])[label]
    return np.column_stack([rng.random((n, 3)) < rates, label]).astype(float)


def test_a_label_among_the_columns_is_classified() -> None:
    X = rows_with_a_label()
    model = BernoulliRBM(
        6, visible=["bernoulli"] * 3 + ["categorical"], learning_rate=0.3, n_iter=60, random_state=0
    ).fit(X)
    p = model.classify_proba(X)
    np.testing.assert_allclose(p.sum(1), 1.0)
    blank = X.copy()
    blank[:, 3] = np.nan  # what stands there does not matter
    np.testing.assert_array_equal(model.classify_proba(blank), p)
    F = np.stack(
        [model.energy(np.column_stack([X[:, :3], np.full(len(X), k)])) for k in range(3)], 1
    )
    np.testing.assert_allclose(p, np.exp(-F) / np.exp(-F).sum(1, keepdims=True), atol=1e-10)
    bayes = (X[:, :3].argmax(1) == X[:, 3]).mean()
    assert (model.classify(X) == X[:, 3]).mean() > bayes - 0.1
    assert model.log_prob_kind_ == "exact"
    states = np.array(
        [[a, b, c, k] for a in (0, 1) for b in (0, 1) for c in (0, 1) for k in range(3)]
    )
    assert np.exp(model.score_samples(states)).sum() == pytest.approx(1.0)


def test_missing_cells_have_the_conditional_distribution() -> None:
    model = small()
    p = np.exp(model.score_samples(STATES))
    row = np.array([[np.nan, 1.0]])
    many = np.repeat(row, 4000, axis=0)
    exact = p[3] / (p[1] + p[3])
    drawn = model.impute(many, "sample", random_state=0)
    assert (drawn[:, 1] == 1).all()
    assert drawn[:, 0].mean() == pytest.approx(exact, abs=0.03)
    assert model.impute(row, "minimise")[0, 0] == 1.0
    assert model.impute(many[:50])[:, 0].mean() == pytest.approx(exact, abs=0.03)


def test_given_y_the_classes_differ() -> None:
    X = rows_with_a_label()
    model = BernoulliRBM(4, learning_rate=0.3, method="cd", n_iter=40, random_state=0).fit(
        X[:, :3], X[:, 3]
    )
    drawn = model.sample(600, y=np.repeat([0, 1, 2], 200), random_state=0).reshape(3, 200, 3)
    assert (drawn.mean(1).argmax(1) == np.arange(3)).all()
    states = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)], float)
    for label in (0.0, 1.0, 2.0):
        assert np.exp(model.score_samples(states, np.full(8, label))).sum() == pytest.approx(1.0)
    joint = sum(
        share * np.exp(model.score_samples(states, np.full(8, label)))
        for label, share in zip((0.0, 1.0, 2.0), model.condition_.weights, strict=True)
    )
    np.testing.assert_allclose(np.exp(model.score_samples(states)), joint, rtol=1e-9)
    assert (model.infer({"x": X[:, :3]}, "y") == X[:, 3]).mean() > 0.7


def test_a_network_of_y_moves_the_biases() -> None:
    rng = np.random.default_rng(0)
    past = rng.integers(0, 2, (200, 2)).astype(float)
    X = np.abs(past - (rng.random((200, 2)) < 0.1))  # mostly the row before
    net = torch.nn.Linear(2, 2 + 3)
    model = BernoulliRBM(
        3, network=net, method="exact", learning_rate=0.3, n_iter=40, random_state=0
    )
    model.fit(X, past)
    assert model.score(X, past) > BernoulliRBM(3, n_iter=10, random_state=0).fit(X).score(X) + 0.5


def test_chains_that_run_away_are_named() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    model = BernoulliRBM(
        30, visible="gaussian", learning_rate=30.0, n_iter=3, n_chains=10, random_state=0
    )
    with pytest.warns(Unreliable, match="of 10 negative chains ran away.*lower learning_rate"):
        model.fit(X)


def test_the_graph_is_drawn() -> None:
    ax = small().plot_graph(names=["rain", "sun"])
    assert len(ax.lines) == 4 and "rain" in [t.get_text() for t in ax.texts]


def test_codes_and_rows() -> None:
    model = small()
    np.testing.assert_allclose(
        model.inverse_transform([[1.0, 1.0]]), [[0.524979, 0.908877]], atol=1e-6
    )
    np.testing.assert_allclose(
        model.energy(STATES[2:], z=[[1.0, 0.0], [1.0, 1.0]]), [-1.4, -2.3], atol=1e-6
    )
    x, z = model.sample(5, return_latent=True, random_state=0)
    assert x.shape == (5, 2) and z.shape == (5, 2)


def test_a_step_is_that_of_scikit_learn() -> None:
    """From the same θ and the same chains, both move θ by the same amount."""
    X = bars_and_stripes()
    peer = PeerRBM(4, learning_rate=0.1, batch_size=len(X), n_iter=3, random_state=0).fit(X)
    before = [
        np.array(p) for p in (peer.components_, peer.intercept_hidden_, peer.intercept_visible_)
    ]
    draws = []
    see = peer._sample_visibles
    peer._sample_visibles = lambda h, rng: draws.append(see(h, rng)) or draws[-1]
    peer._fit(X, np.random.RandomState(1))

    energy = BilinearEnergy(9, 4).double()
    with torch.no_grad():
        for p, value in zip(
            (energy.W, energy.c, energy.b), (before[0].T, *before[1:]), strict=True
        ):
            p.copy_(torch.from_numpy(value))
    chains = torch.from_numpy(draws[0].astype(float))
    x = torch.from_numpy(X)
    loss = -energy.over_z(x).mean() + energy.over_z(chains).mean()
    grads = torch.autograd.grad(loss, [energy.W, energy.c, energy.b])
    after = (peer.components_.T, peer.intercept_hidden_, peer.intercept_visible_)
    for p, g, value in zip((energy.W, energy.c, energy.b), grads, after, strict=True):
        np.testing.assert_allclose((p - 0.1 * g).detach().numpy(), value, atol=1e-12)


def test_at_the_settings_of_scikit_learn_it_learns_at_least_as_well() -> None:
    rng = np.random.default_rng(0)
    kinds = rng.random((10, 32)) < 0.3
    X = (kinds[rng.integers(10, size=1000)] ^ (rng.random((1000, 32)) < 0.1)).astype(float)
    found = []
    for seed in range(5):
        settings = {"learning_rate": 0.05, "n_iter": 5, "random_state": seed}
        ours = BernoulliRBM(12, n_chains=10, schedule="constant", **settings).fit(X)
        peer = PeerRBM(12, **settings).fit(X)
        judge = BernoulliRBM(12, n_iter=1, random_state=0).fit(X)
        for name in ("components_", "intercept_hidden_", "intercept_visible_"):
            setattr(judge, name, getattr(peer, name))
        found.append([ours.score(X), judge.score(X)])
    ours_mean, peer_mean = np.mean(found, 0)
    error = np.std(np.subtract(*np.transpose(found))) / np.sqrt(5)
    assert ours_mean > peer_mean - 2 * error


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix, sparse.lil_array])
def test_sparse_rows_are_dense_rows(kind: type) -> None:
    X = (np.random.default_rng(0).random((40, 6)) > 0.5).astype(float)
    dense = BernoulliRBM(4, n_iter=3, random_state=0).fit(X)
    model = BernoulliRBM(4, n_iter=3, random_state=0).fit(kind(X))
    np.testing.assert_array_equal(model.components_, dense.components_)
    for name in ("transform", "score_samples"):
        np.testing.assert_array_equal(getattr(model, name)(kind(X)), getattr(dense, name)(X))
    np.testing.assert_array_equal(model.gibbs(kind(X), 0), dense.gibbs(X, 0))
    np.testing.assert_array_equal(
        model.partial_fit(kind(X)).components_, dense.partial_fit(X).components_
    )
