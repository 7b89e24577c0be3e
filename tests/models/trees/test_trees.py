"""Decision trees: worked numbers, the peer's trees, missing values, categories, words."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import tree as peer
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine

from groundstate import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from groundstate.errors import DataError, Unsupported
from groundstate.learn.solvers.trees import random_numba as tree_random
from groundstate.learn.solvers.trees import rows as tree_rows
from groundstate.math.info.entropy import entropy
from groundstate.math.info.impurity import (
    gain_ratio,
    gini,
    information_gain,
    squared_error,
)
from groundstate.models.trees.plot import plot_tree
from groundstate.models.trees.text import export_text, read_text, rules

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * RNG.normal(size=300)
TENNIS = [
    *("shhwn", "shhsn", "ohhwy", "rmhwy", "rcnwy", "rcnsn", "ocnsy"),
    *("smhwn", "scnwy", "rmnwy", "smnsy", "omhsy", "ohnwy", "rmhsn"),
]


def test_impurities() -> None:
    assert entropy([9, 5], base=2) == pytest.approx(0.940286, abs=1e-6)
    assert entropy([1, 0]) == 0.0 and gini([1, 3]) == pytest.approx(0.375)
    assert squared_error([1.0, 3.0], [1.0, 3.0]) == pytest.approx(0.75)
    play = [row[4] for row in TENNIS]
    gains = {0: (0.2467, 0.1564), 1: (0.0292, 0.0188), 2: (0.1518, 0.1518), 3: (0.0481, 0.0488)}
    for j, (gain, ratio) in gains.items():
        column = [row[j] for row in TENNIS]
        assert information_gain(play, column) == pytest.approx(gain, abs=1e-4)
        assert gain_ratio(play, column) == pytest.approx(ratio, abs=1e-4)
    column = [row[0] for row in TENNIS]
    assert information_gain(play * 2, column * 2) == pytest.approx(
        information_gain(play, column, sample_weight=np.full(14, 2.0))
    )


def test_worked_stump() -> None:
    model = DecisionTreeRegressor(max_depth=1).fit([[0], [1], [2], [3]], [1.0, 2.0, 2.0, 4.0])
    assert model.tree_.threshold[0] == 2.5
    np.testing.assert_allclose(model.tree_.value[1:, 0, 0], [1.6667, 4.0], atol=1e-4)


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
def test_exact_trees_are_the_peers(criterion: str) -> None:
    ours = DecisionTreeRegressor(criterion=criterion, max_depth=4).fit(X, Y).tree_
    theirs = peer.DecisionTreeRegressor(criterion=criterion, max_depth=4).fit(X, Y).tree_
    np.testing.assert_array_equal(ours.feature, theirs.feature)
    np.testing.assert_array_equal(ours.children_left, theirs.children_left)
    np.testing.assert_allclose(ours.threshold, theirs.threshold, atol=1e-6)
    np.testing.assert_allclose(ours.value[..., 0], theirs.value[..., 0], atol=1e-12)
    np.testing.assert_allclose(ours.impurity, theirs.impurity, atol=1e-12)
    np.testing.assert_allclose(
        ours.compute_feature_importances(), theirs.compute_feature_importances(), atol=1e-9
    )


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_class_trees_are_as_pure_as_the_peers(criterion: str, load: object) -> None:
    A, a = load(return_X_y=True)  # type: ignore[operator]
    for leaves in (None, 6):
        settings = {"criterion": criterion, "max_leaf_nodes": leaves, "max_depth": 4}
        ours = DecisionTreeClassifier(**settings).fit(A, a)
        theirs = peer.DecisionTreeClassifier(**settings, random_state=0).fit(A, a)
        found = [
            (t.impurity * t.weighted_n_node_samples)[t.children_left < 0].sum()
            for t in (ours.tree_, theirs.tree_)
        ]
        assert found[0] == pytest.approx(found[1], rel=0.15)
        assert ours.get_n_leaves() == pytest.approx(theirs.get_n_leaves(), abs=1)


def test_poisson_is_as_pure_as_the_peers() -> None:
    y = np.exp(Y)
    ours = DecisionTreeRegressor(criterion="poisson", max_depth=4).fit(X, y).tree_
    theirs = peer.DecisionTreeRegressor(criterion="poisson", max_depth=4).fit(X, y).tree_
    found = [
        (t.impurity * t.weighted_n_node_samples)[t.children_left < 0].sum() for t in (ours, theirs)
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_no_error_on_distinct_rows_even_without_first_gain() -> None:
    xor = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 3) + 0.01 * RNG.normal(size=(12, 2))
    label = np.array([0, 1, 1, 0] * 3)
    assert DecisionTreeClassifier().fit(xor, label).score(xor, label) == 1.0
    assert DecisionTreeRegressor().fit(X, Y).score(X, Y) == pytest.approx(1.0)


def test_bins_are_nearly_exact() -> None:
    A = RNG.normal(size=(12_000, 3))
    b = A[:, 0] + A[:, 1] ** 2
    exact = DecisionTreeRegressor(splitter="exact", max_depth=6).fit(A, b).score(A, b)
    binned = DecisionTreeRegressor(max_depth=6).fit(A, b).score(A, b)
    assert binned == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("rows", [200, 3000])
@pytest.mark.parametrize("gaps", [False, True])
def test_short_way_grows_the_same_trees(rows: int, gaps: bool) -> None:
    """Constraints that ask for nothing take the general loops; without them, two sums suffice."""
    A = np.round(RNG.normal(size=(rows, 5)), 1)
    if gaps:
        A[RNG.random(A.shape) < 0.1] = np.nan
    y = np.nan_to_num(A[:, 0]) + np.nan_to_num(A[:, 1]) ** 2 + 0.1 * RNG.normal(size=rows)
    settings = {"min_samples_leaf": 3, "max_features": 3, "random_state": 0}
    for model, target in (
        (DecisionTreeRegressor, y),
        (DecisionTreeClassifier, (y > 1).astype(int)),
    ):
        short = model(**settings).fit(A, target)  # type: ignore[arg-type]
        general = model(**settings, monotonic_cst=[0] * 5).fit(A, target)  # type: ignore[arg-type]
        np.testing.assert_array_equal(short.tree_.feature, general.tree_.feature)
        np.testing.assert_array_equal(short.tree_.threshold, general.tree_.threshold)
        np.testing.assert_allclose(short.tree_.impurity, general.tree_.impurity, atol=1e-12)


def test_single_precision_rows_reach_their_leaf() -> None:
    A = X.astype(np.float32)
    model = DecisionTreeRegressor().fit(A, Y)
    assert model.predict(A).dtype == np.float32
    np.testing.assert_allclose(model.predict(A), Y, rtol=1e-6)


def test_several_targets() -> None:
    both = np.column_stack([Y, -Y])
    model = DecisionTreeRegressor(max_depth=4).fit(X, both)
    alone = DecisionTreeRegressor(max_depth=4).fit(X, Y)
    np.testing.assert_allclose(model.predict(X)[:, 0], alone.predict(X), atol=1e-12)
    np.testing.assert_allclose(model.predict(X).sum(1), 0.0, atol=1e-12)


def test_weight_is_repetition() -> None:
    w = RNG.integers(0, 4, 300).astype(float)
    index = RNG.permutation(np.repeat(np.arange(300), w.astype(int)))
    settings = {
        "min_samples_leaf": 7,
        "min_samples_split": 20,
        "max_features": 2,
        "random_state": 1,
    }
    a = DecisionTreeRegressor(**settings).fit(X, Y, sample_weight=w)  # type: ignore[arg-type]
    b = DecisionTreeRegressor(**settings).fit(X[index], Y[index])  # type: ignore[arg-type]
    np.testing.assert_array_equal(a.tree_.feature, b.tree_.feature)
    np.testing.assert_allclose(a.predict(X), b.predict(X), rtol=1e-10)


def test_missing_values_go_to_the_better_side() -> None:
    A = X.copy()
    A[::3, 0] = np.nan
    gone = np.isnan(A[:, 0]).astype(int)
    stump = DecisionTreeClassifier(max_depth=1).fit(A, gone)
    assert stump.score(A, gone) == 1.0
    y = np.where(np.isnan(A[:, 0]), 5.0, A[:, 0])
    model = DecisionTreeRegressor(max_depth=5).fit(A, y)
    assert model.score(A, y) > 0.95
    plain = DecisionTreeRegressor(max_depth=1).fit(np.r_[0.0, 1.0, 1.0][:, None], [0.0, 1.0, 1.0])
    assert plain.predict([[np.nan]])[0] == 1.0  # never seen: the larger side


def test_categories_are_cut_into_sets() -> None:
    level = RNG.integers(0, 9, 400)
    y = np.isin(level, [1, 4, 7]).astype(int)
    frame = pd.DataFrame(
        {"kind": pd.Categorical([f"k{v}" for v in level]), "noise": RNG.normal(size=400)}
    )
    model = DecisionTreeClassifier(max_depth=1).fit(frame, y)
    assert model.score(frame, y) == 1.0
    assert "kind in {" in export_text(model)


def test_pruning_path_like_the_peer() -> None:
    A, a = load_wine(return_X_y=True)
    ours = DecisionTreeClassifier(max_depth=3).fit(A, a)
    path = ours.cost_complexity_pruning_path(A, a)
    assert (np.diff(path.ccp_alphas) > 0).all() and (np.diff(path.impurities) > 0).all()
    sizes = [
        DecisionTreeClassifier(max_depth=3, ccp_alpha=alpha).fit(A, a).get_n_leaves()
        for alpha in path.ccp_alphas
    ]
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] == 1
    y = np.round(Y, 3)
    mine = DecisionTreeRegressor(max_depth=5).cost_complexity_pruning_path(X, y)
    theirs = peer.DecisionTreeRegressor(max_depth=5).cost_complexity_pruning_path(X, y)
    np.testing.assert_allclose(mine.ccp_alphas, theirs.ccp_alphas, atol=1e-9)


def test_limits_hold() -> None:
    model = DecisionTreeRegressor(min_samples_leaf=20, max_leaf_nodes=7).fit(X, Y)
    view = model.tree_
    assert view.n_leaves <= 7 and view.weighted_n_node_samples.min() >= 20
    assert DecisionTreeRegressor(min_impurity_decrease=1e3).fit(X, Y).get_n_leaves() == 1
    share = DecisionTreeRegressor(min_weight_fraction_leaf=0.2).fit(X, Y).tree_
    assert share.weighted_n_node_samples.min() >= 60
    rising = DecisionTreeRegressor(monotonic_cst=[0, 1, 0, 0], max_depth=6).fit(X, Y)
    stump = DecisionTreeRegressor(monotonic_cst=[0, -1, 0, 0], max_depth=1).fit(X[:, :4], X[:, 1])
    assert stump.tree_.feature[0] != 1 and rising.score(X, Y) > 0.3


def test_paths_and_leaves() -> None:
    model = DecisionTreeRegressor(max_depth=3).fit(X, Y)
    theirs = peer.DecisionTreeRegressor(max_depth=3).fit(X, Y)
    np.testing.assert_array_equal(model.apply(X), theirs.apply(X))
    np.testing.assert_array_equal(
        model.decision_path(X).toarray(), theirs.decision_path(X).toarray()
    )
    assert model.feature_importances_.sum() == pytest.approx(1.0)


def test_energy_is_minus_the_log_of_the_share() -> None:
    label = (Y > 0).astype(int)
    model = DecisionTreeClassifier(min_samples_leaf=10).fit(X, label)
    p = model.predict_proba(X)
    np.testing.assert_allclose(model.energy(X, label), -np.log(p[np.arange(300), label]))
    np.testing.assert_allclose(model.energy(X), 0.0, atol=1e-12)  # shares sum to one


def test_text_predicts_identically() -> None:
    A = X.copy()
    A[::5, 1] = np.nan
    model = DecisionTreeRegressor(max_depth=5).fit(A, Y)
    read = read_text(export_text(model), [f"x{j}" for j in range(4)])
    np.testing.assert_array_equal(read(A)[:, 0], model.predict(A))
    assert len(rules(model)) == model.get_n_leaves() and rules(model)[0].startswith("if x")
    forest = RandomForestClassifier(3, random_state=0).fit(A, Y > 0)
    second = read_text(export_text(forest, tree=1), [f"x{j}" for j in range(4)])
    np.testing.assert_allclose(second(A), forest.estimators_[1].predict_proba(A))


def test_picture_marks_the_way_of_a_row() -> None:
    model = DecisionTreeClassifier(max_depth=2).fit(X, Y > 0)
    axes = plot_tree(model, sample=X[0])
    bold = [t for t in axes.texts if t.get_bbox_patch().get_linewidth() > 2]
    assert len(axes.texts) == model.tree_.node_count and len(bold) == 3


def test_errors_teach() -> None:
    with pytest.raises(Unsupported, match="has no fitted trees to show"):
        export_text(DecisionTreeClassifier())
    with pytest.raises(DataError, match="takes one target"):
        DecisionTreeRegressor(criterion="absolute_error").fit(X, np.c_[Y, Y])
    with pytest.raises(DataError, match="non-negative y"):
        DecisionTreeRegressor(criterion="poisson").fit(X, Y)
    with pytest.raises(ValueError, match="two classes or one target"):
        DecisionTreeRegressor(monotonic_cst=[1, 0, 0, 0]).fit(X, np.c_[Y, Y])


NAMES = ("feature", "threshold", "children_left", "children_right", "value", "impurity")


def _table(dtype: type, n: int = 160) -> tuple[np.ndarray, np.ndarray]:
    """Columns with few and with many values, NaN in two of them, values above zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5)).round(1).astype(dtype)
    X[:, 2] = rng.normal(size=n)
    X[:, 4] = rng.normal(size=n)
    X[:, :3][rng.random((n, 3)) < 0.1] = np.nan
    X[:, 3] = np.abs(X[:, 3])
    return X, np.exp(np.nan_to_num(X).sum(1) / 2 + rng.normal(size=n) / 2)


def _same(one: Any, other: Any) -> None:
    for name in NAMES:
        a, b = getattr(one.tree_, name), getattr(other.tree_, name)
        if name in ("value", "impurity"):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["squared_error", "poisson", "two", "gini", "entropy", "rising"])
def test_sorted_columns_grow_the_same_tree_as_codes(
    monkeypatch: pytest.MonkeyPatch, dtype: type, weighted: bool, kind: str
) -> None:
    X, y = _table(dtype)
    weight = np.random.default_rng(1).integers(0, 4, len(X)) if weighted else None
    model: Any = DecisionTreeRegressor(random_state=0)
    if kind in ("poisson", "squared_error"):
        model.set_params(criterion=kind)
    elif kind == "rising":
        model.set_params(monotonic_cst=[1, 0, -1, 1, 0])
    else:
        model = DecisionTreeClassifier(criterion="gini" if kind == "two" else kind, random_state=0)
        y = np.digitize(y, np.quantile(y, [0.5] if kind == "two" else [0.3, 0.5, 0.7]))
    ordered = clone(model).fit(X, y, sample_weight=weight)
    monkeypatch.setattr(tree_rows, "MANY", 0)
    coded = clone(model).fit(X, y, sample_weight=weight)
    assert ordered.tree_.node_count > 15
    _same(ordered, coded)
    cut = ordered.tree_.threshold[ordered.tree_.feature >= 0]
    cut = cut[np.isfinite(cut)]
    np.testing.assert_array_equal(cut, cut.astype(dtype))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_random_cuts_do_not_depend_on_the_block(
    monkeypatch: pytest.MonkeyPatch, dtype: type, classes: int
) -> None:
    X, y = _table(dtype)
    model: Any = DecisionTreeClassifier if classes else DecisionTreeRegressor
    model = partial(model, splitter="random", random_state=0)
    if classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    large = model().fit(X, y)
    monkeypatch.setattr(tree_random, "BLOCK", 0)
    small = model().fit(X, y)
    _same(large, small)
    cut = large.tree_.threshold[large.tree_.feature >= 0]
    np.testing.assert_array_equal(cut, cut.astype(dtype))
    if not classes:  # every leaf holds equal targets
        np.testing.assert_allclose(large.predict(X), y, rtol=1e-6)


def test_packed_trees_answer_as_plain_ones() -> None:
    rng = np.random.default_rng(3)
    table, y = rng.normal(size=(150, 4)).round(1), rng.normal(size=150)
    table[rng.random(table.shape) < 0.1] = np.nan
    model = RandomForestRegressor(7, random_state=0).fit(table, y)
    nodes = model.energy_.nodes
    new = torch.from_numpy(np.vstack([table, table[:3] + 0.05]))  # no multiple of four
    packed = nodes.apply_rows(new)
    assert nodes._packed(len(new)) is nodes._packed(1)  # kept
    torch.testing.assert_close(packed, nodes.descend(new), rtol=0, atol=0)
    copied = copy.deepcopy(nodes)
    assert "_held" not in copied.__dict__
    first = model.predict(new.numpy())
    old = nodes.threshold.clone()
    nodes.threshold += 10.0  # trees that changed are packed anew
    assert not torch.equal(nodes.apply_rows(new), packed)
    torch.testing.assert_close(nodes.apply_rows(new), nodes.descend(new), rtol=0, atol=0)
    nodes.threshold.copy_(old)
    np.testing.assert_array_equal(model.predict(new.numpy()), first)


@pytest.mark.parametrize(("shift", "scale"), [(2.0**20, 1.0), (0.0, 2.0**-30), (2.0**27, 2.0**-3)])
@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(max_depth=6),
        DecisionTreeRegressor(max_depth=4, splitter="random", random_state=0),
        RandomForestRegressor(5, random_state=0, bootstrap=False, max_features=2),
        GradientBoostingRegressor(n_estimators=5),
    ],
)
def test_the_unit_and_the_zero_of_the_target_do_not_matter(
    model: Any, shift: float, scale: float
) -> None:
    """Prices of 1e6 ± 1 and currents of 1e-9: cuts were compared by sums of squares far from 0."""
    y = np.round(Y * 2**20) / 2**20  # so that no digit is lost by the shift
    plain = clone(model).fit(X, y).predict(X)
    moved = clone(model).fit(X, y * scale + shift).predict(X)
    np.testing.assert_allclose((moved - shift) / scale, plain, atol=1e-6)


def test_a_least_decrease_and_the_impurity_have_the_unit_of_the_target() -> None:
    small = DecisionTreeRegressor(min_impurity_decrease=0.05).fit(X, Y)
    large = DecisionTreeRegressor(min_impurity_decrease=0.05 * 1e8).fit(X, Y * 1e4 + 1e7)
    assert small.get_n_leaves() == large.get_n_leaves() > 2
    np.testing.assert_allclose(large.tree_.impurity, small.tree_.impurity * 1e8, rtol=1e-6)
    theirs = peer.DecisionTreeRegressor(min_impurity_decrease=0.05).fit(X, Y)
    np.testing.assert_allclose(small.predict(X), theirs.predict(X))


def test_a_constant_target_far_from_zero_is_one_exact_leaf() -> None:
    model = DecisionTreeRegressor().fit(X, np.full(300, 1e6 + 0.1))
    assert model.get_n_leaves() == 1
    assert set(model.predict(X)) == {1e6 + 0.1}
