"""Bounds of the risk: VC dimension, structural risk minimisation, PAC-Bayes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from groundstate.errors import DataError
from groundstate.evaluate.theory.pac_bayes import pac_bayes
from groundstate.evaluate.theory.structural_risk import srm
from groundstate.evaluate.theory.vc_dimension import shatters, vc_dimension
from groundstate.math.divergences.bernoulli import kl_bernoulli
from groundstate.math.stats import bounds
from groundstate.math.stats.vc_bound import vc_bound


def rows(n: int, d: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=n) > 0).astype(int)


def test_vc_numbers() -> None:
    assert bounds.vc(1000, 0.05, 11) == pytest.approx(0.269472, abs=5e-7)
    assert bounds.vc(10**5, 0.05, 3, "symmetrised") == pytest.approx(0.057064, abs=5e-7)
    assert vc_bound(0.1, 1000, 3) == pytest.approx(0.1 + bounds.vc(1000, 0.05, 3))
    assert [bounds.growth(n, 2) for n in (1, 2, 3, 4)] == [2, 4, 7, 11]
    with pytest.raises(ValueError, match="form must be"):
        bounds.vc(10, 0.05, 2, "tight")  # type: ignore[arg-type]


def test_shattering() -> None:
    triangle = [[0.0, 0.0], [1.0, 0.2], [0.3, 1.0]]
    assert shatters("halfspaces", triangle)
    rng = np.random.default_rng(0)
    for _ in range(5):
        assert not shatters("halfspaces", rng.normal(size=(4, 2)))
    assert not shatters("halfspaces", [[0, 0], [1, 1], [2, 2]])  # three on a line
    assert shatters("intervals", [0.0, 1.0]) and not shatters("intervals", [0.0, 1.0, 2.0])
    diamond = [[0, 1], [0, -1], [1, 0], [-1, 0]]
    assert shatters("boxes", diamond) and not shatters("boxes", [*diamond, [0, 0]])
    assert [vc_dimension(c, 2) for c in ("halfspaces", "intervals", "boxes")] == [3, 2, 4]
    assert shatters(lambda points, labels: True, diamond)
    with pytest.raises(DataError, match="intervals are of the line"):
        shatters("intervals", triangle)


def test_sines_label_every_number_of_points() -> None:
    """sign(sin(w x)) shatters x_i = 10^-i with w = pi (1 + sum of (1 - y_i) 10^i)."""
    n = 6
    x = 10.0 ** -np.arange(1, n + 1)

    def labelled(points: np.ndarray, labels: np.ndarray) -> bool:
        w = np.pi * (1 + sum((1 - y) * 10**i for i, y in enumerate(labels, 1)))
        return bool(((np.sin(w * points[:, 0]) > 0) == (labels == 1)).all())

    assert shatters(labelled, x) and vc_dimension("sine") == np.inf


def test_bound_is_above_the_test_error_and_srm_picks_the_lowest() -> None:
    X, y = rows(2000)
    fresh, truth = rows(5000, seed=1)
    found = srm({"all": (LogisticRegression(), 6)}, X, y)
    assert found.rows[0].bound >= (found.model.predict(fresh) != truth).mean()
    sizes = srm([(LogisticRegression(), 6), (LogisticRegression(), 60)], X, y)
    assert sizes.chosen == "0" and sizes.rows[0].width < sizes.rows[1].width
    with pytest.raises(DataError, match="0 < d <= 2n"):
        srm([(LogisticRegression(), 10**6)], X, y)


def test_pac_bayes_numbers() -> None:
    assert bounds.pac_bayes_rhs(1000, 5.0, 0.05) == pytest.approx(0.0149045, abs=5e-8)
    assert bounds.pac_bayes(0.1, 1000, 5.0) == pytest.approx(0.159576, abs=5e-7)
    assert bounds.pac_bayes(0.1, 1000, 5.0, form="sqrt") == pytest.approx(0.186326, abs=5e-7)
    tight = bounds.pac_bayes(0.1, 1000, 5.0, log_term="maurer")
    assert tight == pytest.approx(0.153110, abs=5e-7)
    assert bounds.kl_gaussians([1.0, 2.0], [0.3, 0.3], [1.0, 2.0], 0.3) == 0
    assert float(kl_bernoulli(0.1, 0.2)) == pytest.approx(0.036690, abs=5e-7)
    assert float(kl_bernoulli(0.1, 0.2)) / 2 == pytest.approx(0.018345, abs=5e-7)  # >= .01
    with pytest.raises(ValueError, match="from 8 rows on"):
        bounds.pac_bayes(0.1, 5, 1.0, log_term="maurer")


def test_guarantee_holds_on_fresh_rows() -> None:
    X, y = rows(1000)
    fresh, truth = rows(20000, seed=1)
    model = LogisticRegression().fit(X, y)
    exact = pac_bayes(model, X, y, gibbs="exact")
    drawn = pac_bayes(model, X, y, n_draws=2000)
    assert exact.risk <= exact.bound <= drawn.bound + 1e-9 < 0.5
    assert drawn.risk_upper > drawn.risk
    again = pac_bayes(model, X, y, posterior=drawn.posterior_std, n_draws=2000, gibbs="exact")
    assert drawn.risk == pytest.approx(again.risk, abs=0.01)
    gibbs = pac_bayes(model, fresh, truth, posterior=exact.posterior_std, gibbs="exact").risk
    assert gibbs <= exact.bound


def test_informed_prior_and_training_lower_the_bound() -> None:
    X, y = rows(2000, d=20)
    model = LogisticRegression().fit(X[:1000], y[:1000])
    plain = pac_bayes(model, X[:1000], y[:1000], gibbs="exact")
    other = LogisticRegression().fit(X[1000:], y[1000:])
    informed = pac_bayes(
        model, X[:1000], y[:1000], other, gibbs="exact",
        rows=np.arange(1000), prior_rows=np.arange(1000, 2000),
    )  # fmt: skip
    assert informed.bound < plain.bound - 0.05
    trained = pac_bayes(model, X[:1000], y[:1000], gibbs="exact", objective="pac_bayes")
    assert trained.bound < plain.bound
    with pytest.raises(DataError, match="500 rows are both in rows and in prior_rows"):
        pac_bayes(model, X, y, other, rows=np.arange(1000), prior_rows=np.arange(500, 1500))


def test_several_classes_by_draws() -> None:
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    model = LogisticRegression().fit(X, y)
    found = pac_bayes(model, X, y, n_draws=500)
    assert found.risk <= found.bound <= 1.0 and found.mean.shape == (3, 5)
    with pytest.raises(DataError, match="the exact Gibbs risk is for two classes"):
        pac_bayes(model, X, y, gibbs="exact")
