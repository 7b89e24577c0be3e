"""The linear support vector machine: the same optimum as liblinear, in all its forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix, random_array
from sklearn.datasets import load_iris, make_classification
from sklearn.svm import SVC as Libsvm
from sklearn.svm import LinearSVC as Peer

from groundstate import LinearSVC
from groundstate.energy import LinearEnergy
from groundstate.errors import NotConverged
from groundstate.learn import L2, Margin, OneVsRest, SquaredHingeNewton, fit
from groundstate.learn.solvers.svm.hinge import newton as hinge
from groundstate.learn.solvers.svm.hinge import rows_numba as hinge_rows
from groundstate.learn.solvers.svm.hinge.sums_numba import ProductSums, TileSums

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def table(k: int, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    return make_classification(
        n, 6, n_informative=4, n_classes=k, class_sep=0.7, flip_y=0.1, random_state=1
    )


def objective(model: Any, X: Any, y: np.ndarray) -> float:
    """The objective of the parameters of either library."""
    f = X @ model.coef_.T + model.intercept_
    free = not getattr(model, "penalize_intercept", True)
    b = np.zeros(1) if free else np.ravel(model.intercept_ / model.intercept_scaling)
    if model.multi_class == "crammer_singer":
        own = f[np.arange(len(y)), y]
        f[np.arange(len(y)), y] = -np.inf
        loss = np.maximum(0, 1 + f.max(1) - own).sum()
    else:
        targets = [1] if len(model.coef_) == 1 else range(len(model.coef_))
        gap = np.maximum(0, 1 - np.stack([np.where(y == k, 1, -1) for k in targets], 1) * f)
        loss = (gap if model.loss == "hinge" else gap**2).sum()
    if model.penalty == "l1":
        return float(model.C * loss + np.abs(model.coef_).sum() + np.abs(b).sum())
    return float(model.C * loss + 0.5 * (model.coef_**2).sum() + 0.5 * (b**2).sum())


FORMS = [
    {}, {"C": 0.01}, {"C": 100.0}, {"intercept_scaling": 10.0}, {"fit_intercept": False},
    {"class_weight": "balanced"}, {"class_weight": {0: 4.0}}, {"loss": "hinge", "C": 0.1},
    {"penalty": "l1"}, {"penalty": "l1", "C": 0.02}, {"penalty": "l1", "intercept_scaling": 5.0},
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("k", [2, 3])
def test_same_optimum_as_liblinear(form: dict[str, Any], k: int) -> None:
    if "class_weight" in form and k > 2:  # liblinear weighs a class only where it is the positive
        form = {**form, "class_weight": None}
    X, y = table(k)
    dual = form.get("loss") == "hinge"
    ours = LinearSVC(random_state=0, max_iter=20_000, **form).fit(X, y)
    peer = Peer(dual=dual, tol=1e-7, max_iter=200_000, random_state=0, **form).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=2e-3 if dual else 2e-5)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=2e-3 if dual else 2e-5)
    if form.get("class_weight") is None:
        assert objective(ours, X, y) <= objective(peer, X, y) * (1 + 1e-4)


def test_class_weights_are_row_weights_in_every_machine() -> None:
    X, y = table(3)
    factors = np.array([3.0, 1.0, 0.5])
    a = LinearSVC(class_weight=dict(enumerate(factors))).fit(X, y)
    b = LinearSVC().fit(X, y, sample_weight=factors[y])
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-12)


@pytest.mark.parametrize("form", [{}, {"loss": "hinge", "C": 0.1}, {"penalty": "l1"}], ids=str)
def test_sparse_rows_are_dense_rows(form: dict[str, Any]) -> None:
    X = random_array((120, 40), density=0.15, format="csr", random_state=0)
    y = (X @ np.random.default_rng(0).normal(size=40) > 0).astype(int)
    sparse = LinearSVC(random_state=0, tol=1e-6, max_iter=50_000, **form).fit(X, y)
    dense = LinearSVC(random_state=0, tol=1e-6, max_iter=50_000, **form).fit(X.toarray(), y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-4)
    np.testing.assert_allclose(
        sparse.decision_function(X), dense.decision_function(X.toarray()), atol=1e-3
    )
    np.testing.assert_allclose(sparse.energy(X, y), sparse.energy(X.toarray(), y), atol=1e-10)


def test_wide_rows_take_conjugate_gradients() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2100))
    y = (X[:, 0] + 0.1 * rng.normal(size=60) > 0).astype(int)
    ours = LinearSVC(C=0.01).fit(X, y)
    peer = Peer(C=0.01, dual=True, tol=1e-8, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-6)


@pytest.mark.parametrize("C", [0.1, 1.0])
@pytest.mark.parametrize("sparse", [False, True])
def test_crammer_singer_is_that_of_liblinear(C: float, sparse: bool) -> None:
    X, y = table(3)
    ours = LinearSVC(multi_class="crammer_singer", C=C, random_state=0, max_iter=20_000)
    peer = Peer(multi_class="crammer_singer", C=C, tol=1e-7, max_iter=200_000, random_state=0)
    ours.fit(csr_matrix(X) if sparse else X, y)
    peer.fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=5e-3)
    assert objective(ours, X, y) <= objective(peer, X, y) * (1 + 1e-4)


def test_crammer_singer_with_two_classes_gives_one_row() -> None:
    X, y = table(2)
    ours = LinearSVC(multi_class="crammer_singer", C=0.1, random_state=0).fit(X, y)
    peer = Peer(multi_class="crammer_singer", C=0.1, tol=1e-7, max_iter=100_000).fit(X, y)
    assert ours.coef_.shape == (1, 6)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=2e-3)


@pytest.mark.parametrize(
    ("y", "m", "loss", "raised"), [(0, 1.5, 0.5, 1), (1, 1.0, 2.0, 0), (2, 1.0, 3.0, 0)]
)
def test_margin_against_the_best_wrong_class(y: int, m: float, loss: float, raised: int) -> None:
    energy = LinearEnergy(1, 3).double()
    energy.b.data.copy_(torch.tensor([-1.0, -2.0, -3.0]))
    batch = {"x": torch.zeros(1, 1, dtype=torch.float64), "y": torch.tensor([y])}
    found = Margin(m)(energy, batch).loss
    assert float(found.detach()) == pytest.approx(loss)
    found.sum().backward()
    expected = np.zeros(3)  # ∇e_y − ∇e_ŷ with ∂e_k/∂b_k = −1
    expected[y], expected[raised] = -1.0, 1.0
    np.testing.assert_allclose(energy.b.grad.numpy(), expected)


def test_hinge_values_and_the_kink() -> None:
    f = torch.tensor([2.0, 1.0, 0.5, -1.0], requires_grad=True)
    e = torch.stack([f / 2, -f / 2], 1)  # e of the classes −1 and +1
    loss = OneVsRest(power=1).rows(e, torch.ones(4, dtype=torch.int64))
    np.testing.assert_allclose(loss.detach().numpy(), [0, 0, 0.5, 2.0])


def test_free_intercept_with_the_hinge_is_the_kernel_machine() -> None:
    X, y = table(2)
    X = X + 3.0
    ours = LinearSVC(
        loss="hinge", penalize_intercept=False, C=0.1, tol=1e-5, max_iter=100_000, random_state=0
    ).fit(X, y)
    peer = Libsvm(kernel="linear", C=0.1, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=2e-3)
    slack = np.maximum(0, 1 - np.where(y == 1, 1, -1) * ours.decision_function(X))
    value = 0.5 * (ours.coef_**2).sum() + 0.1 * slack.sum()
    assert ours.history_.objective[-1] * len(X) * 0.1 == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("joint", ["ovr", "crammer_singer"])
def test_moving_the_origin_does_not_matter_to_a_free_intercept(joint: str) -> None:
    X, y = table(3)
    model = LinearSVC(multi_class=joint, penalize_intercept=False, C=0.1, tol=1e-6, random_state=0)
    a = model.set_params(max_iter=100_000).fit(X, y)
    scores = a.decision_function(X)
    moved = model.fit(X + 2.0, y).decision_function(X + 2.0)
    scores, moved = (s - s.mean(1, keepdims=True) for s in (scores, moved))
    np.testing.assert_allclose(moved, scores, atol=5e-3)


def test_absolute_values_in_the_penalty_set_weights_to_zero() -> None:
    X, y = make_classification(300, 30, n_informative=3, n_redundant=0, random_state=0)
    model = LinearSVC(penalty="l1", C=0.02).fit(X, y)
    assert (model.coef_ == 0).sum() >= 20
    gap = np.maximum(0, 1 - np.where(y == 1, 1, -1) * model.decision_function(X))
    g = -2 * model.C * (np.where(y == 1, 1, -1) * gap) @ X
    w = model.coef_[0]
    assert (np.abs(g[w == 0]) <= 1 + 1e-5).all()
    np.testing.assert_allclose(g[w != 0], -np.sign(w[w != 0]), atol=1e-5)


def test_newton_is_exact_and_quick() -> None:
    X, y = load_iris(return_X_y=True)
    model = LinearSVC(C=10.0).fit(X, y)
    assert model.n_iter_ <= 25 and model.history_.stop == "gradient"
    values = model.history_.objective
    assert values == sorted(values, reverse=True)


def test_sums_of_tiles_are_sums_of_products() -> None:
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(20_000, 7)), np.sign(rng.normal(size=20_000))
    w = rng.integers(0, 3, 20_000).astype(float)
    tiles = TileSums(X, t, w, 1.0, True)
    products = ProductSums(torch.from_numpy(X), t, torch.from_numpy(w), 1.0, True, True)
    ridge = np.ones(8)
    for theta in (np.zeros(8), rng.normal(size=8), rng.normal(size=8)):  # kept and amended
        (a, g), (b, h) = tiles.at(theta), products.at(theta)
        assert a == pytest.approx(b) and np.allclose(g, h, rtol=1e-9, atol=1e-7)
        np.testing.assert_allclose(tiles.direction(g, ridge), products.direction(h, ridge))


def test_first_weights_from_a_share_of_the_rows_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = table(2, 2000)
    plain = LinearSVC().fit(X, y)
    monkeypatch.setattr(hinge, "PILOT", 500)
    np.testing.assert_allclose(LinearSVC().fit(X, y).coef_, plain.coef_, atol=1e-9)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"penalty": "l1", "loss": "hinge"}, "penalty='l1' is solved in the primal"),
        ({"penalty": "l1", "dual": True}, "penalty='l1' is solved in the primal"),
        ({"loss": "hinge", "dual": False}, "loss='hinge' has kinks"),
    ],
)
def test_combinations_without_a_solver_are_named(form: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LinearSVC(**form).fit(*table(2))


def test_limits_are_reported() -> None:
    X, y = table(3)
    for form in ({"loss": "hinge"}, {"multi_class": "crammer_singer"}, {"penalty": "l1"}):
        with pytest.warns(NotConverged, match="raise max_iter"):
            LinearSVC(max_iter=2, random_state=0, **form).fit(X, y)


@pytest.mark.parametrize("form", [{"loss": "hinge"}, {"multi_class": "crammer_singer"}], ids=str)
@pytest.mark.filterwarnings("ignore::groundstate.errors.NotConverged")
def test_weights_are_repetitions_to_the_bit(form: dict[str, Any]) -> None:
    X, y = table(3)
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    index = np.random.default_rng(1).permutation(np.repeat(np.arange(len(X)), weight))
    a = LinearSVC(max_iter=50, random_state=0, **form).fit(X, y, sample_weight=weight)
    b = LinearSVC(max_iter=50, random_state=0, **form).fit(X[index], y[index])
    np.testing.assert_array_equal(a.coef_, b.coef_)


def test_two_penalties_are_one_with_a_strength_for_the_intercept() -> None:
    X, y = (torch.from_numpy(v) for v in table(3))
    energy = LinearEnergy(6, 3).double()
    both = L2(1.0) + L2(0.25, select=("b",))
    assert hinge_rows.strengths(both, L2) == (1.0, 0.25)
    fit(energy, {"x": X, "y": y}, OneVsRest(), SquaredHingeNewton(), penalty=both)
    scaled = LinearSVC(intercept_scaling=2.0).fit(X.numpy(), y.numpy())
    np.testing.assert_allclose(energy.b.detach().numpy(), scaled.intercept_, atol=1e-9)


@pytest.mark.parametrize(
    ("form", "most"),
    [({"loss": "hinge"}, 600), ({"multi_class": "crammer_singer"}, 600), ({"dual": True}, 600)],
    ids=str,
)
def test_the_dual_ends_soon_where_rows_one_by_one_would_not(
    form: dict[str, Any], most: int
) -> None:
    X, y = load_iris(return_X_y=True)  # unscaled: plain passes need tens of thousands
    model = LinearSVC(random_state=0, **form).fit(X, y)
    assert model.history_.converged and model.n_iter_ <= most


@pytest.mark.parametrize("free", [False, True])
def test_long_tables_begin_at_a_smooth_hinge(free: bool) -> None:
    X, y = make_classification(
        2000, 8, n_informative=6, n_redundant=0, class_sep=0.6, flip_y=0.1, random_state=0
    )
    weight = np.random.default_rng(0).integers(1, 3, 2000)
    settings = {"loss": "hinge", "penalize_intercept": not free, "random_state": 0}
    model = LinearSVC(**settings).fit(X, y, sample_weight=weight)
    assert model.history_.converged and model.n_iter_ <= 400
    t = np.where(y == 1, 1, -1)
    margin = t * model.decision_function(X)
    # w = Σ αtx: what the rows inside leave over is carried by the few on the margin
    inside, on = margin < 1 - 1e-3, np.abs(margin - 1) <= 1e-3
    assert on.sum() <= 30
    rows = X if free else np.column_stack([X, np.ones(2000)])
    theta = model.coef_[0] if free else np.r_[model.coef_[0], model.intercept_]
    left = theta - (weight * t * inside) @ rows
    share = np.linalg.lstsq((rows[on] * t[on, None]).T, left, rcond=None)[0]
    np.testing.assert_allclose((rows[on] * t[on, None]).T @ share, left, atol=0.02)
    index = np.random.default_rng(1).permutation(np.repeat(np.arange(2000), weight))
    again = LinearSVC(**settings).fit(X[index], y[index])
    np.testing.assert_array_equal(again.coef_, model.coef_)


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e6])
def test_the_unit_of_the_features_is_only_a_unit(scale: float) -> None:
    X, y = table(2)
    plain = LinearSVC(C=1.0).fit(X, y)
    scaled = LinearSVC(C=scale**-2, intercept_scaling=scale).fit(X * scale, y)
    np.testing.assert_allclose(scaled.coef_ * scale, plain.coef_, rtol=1e-5)
    np.testing.assert_allclose(scaled.intercept_, plain.intercept_, rtol=1e-5)


def test_far_from_the_origin_newton_still_ends() -> None:
    X, y = table(2)
    near = LinearSVC(penalize_intercept=False).fit(X, y)
    far = LinearSVC(penalize_intercept=False).fit(X + 1e5, y)
    assert far.n_iter_ <= 30
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_equal_rows_of_both_classes_are_no_optimum_of_their_own(loss: str) -> None:
    X, y = np.ones((150, 1)), np.arange(150) % 5 == 0
    ours = LinearSVC(loss=loss, dual=True, C=10, tol=1e-8).fit(X, y)
    b = ours.coef_[0, 0]  # of two columns that are the same, each has half
    assert ours.intercept_[0] == pytest.approx(b)
    # the hinge is least at −1, where the majority sits; its square at the mean of ±1
    assert 2 * b == pytest.approx(-1.0 if loss == "hinge" else -0.6, abs=1e-3)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("C", [1.0, 1000.0])
def test_absolute_values_are_optimal_soon(C: float, sparse: bool) -> None:
    rng = np.random.default_rng(3)
    X = rng.integers(-3, 4, size=(30, 40)).astype(float)
    y = rng.integers(2, size=30)
    ours = LinearSVC(penalty="l1", C=C, tol=1e-6, max_iter=300)
    ours.fit(csr_matrix(X) if sparse else X, y)
    theta = np.append(ours.coef_[0], ours.intercept_)
    t, full = np.where(y == 1, 1.0, -1.0), np.c_[X, np.ones(30)]
    g = -2 * C * (t * np.maximum(1 - t * (full @ theta), 0)) @ full
    on = theta != 0
    assert on.sum() < 31
    np.testing.assert_allclose(g[on], -np.sign(theta[on]), atol=1e-4)
    assert (abs(g[~on]) <= 1 + 1e-4).all()


def test_a_gradient_of_zero_at_the_start_is_the_end() -> None:
    X = csr_matrix(np.ones((4, 1)))
    model = LinearSVC().fit(X, [0, 1, 0, 1])
    np.testing.assert_allclose([model.coef_[0, 0], model.intercept_[0]], 0, atol=1e-12)


def test_the_joint_machine_ends_in_bounded_work() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 5)) + 1e4 * rng.normal(size=5)
    y = rng.integers(5, size=150)
    with pytest.warns(NotConverged, match="50 passes"):
        model = LinearSVC(multi_class="crammer_singer", C=1000, max_iter=50).fit(X, y)
    assert model.n_iter_ <= 50
