"""MixtureModel: every family by its own check, columns of different kinds, components as functions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score

from groundstate import GaussianMixture, MixtureModel
from groundstate.errors import DataError, NotConverged
from groundstate.models.mixtures.mixture_model import Columns

BITS = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1], [0, 1, 0]], float)


def quiet(model: MixtureModel, X: np.ndarray, **more: object) -> MixtureModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        return model.fit(X, **more)


def test_bernoulli_of_the_notes() -> None:
    p = np.array([[0.7, 0.7, 0.4], [0.3, 0.4, 0.6]])
    log = BITS @ np.log(p / (1 - p)).T + np.log(1 - p).sum(1)
    r = np.exp(log) / np.exp(log).sum(1, keepdims=True)
    np.testing.assert_allclose(r[:, 0], [0.859649, 0.731343, 0.125, 0.529412], atol=1e-6)
    assert np.log(0.5 * np.exp(log).sum(1)).mean() == pytest.approx(-1.960645, abs=1e-6)
    # the step that starts from these responsibilities is the first M-step
    model = MixtureModel("bernoulli", 2, alpha=0.0, resp_init=r, max_iter=1, tol=0.0)
    quiet(model, BITS)
    assert model.history_.extra["log_likelihood"][0] == pytest.approx(-1.792468, abs=1e-6)
    end = quiet(MixtureModel("bernoulli", 2, alpha=0.0, resp_init=r, max_iter=5000, tol=0.0), BITS)
    assert end.lower_bound_ == pytest.approx(-1.517106, abs=1e-4)
    energy = model.energy_
    with torch.no_grad():
        energy.from_sums(energy.sums(torch.from_numpy(BITS), torch.from_numpy(r)))
    np.testing.assert_allclose(model.weights_[0], 0.561351, atol=1e-6)
    expected = [[0.708555, 0.944331, 0.381376], [0.233106, 0.501310, 0.651806]]
    np.testing.assert_allclose(energy.families[0].p.detach().numpy(), expected, atol=1e-6)


def test_gaussians_are_the_diagonal_mixture() -> None:
    X, _ = make_blobs(300, 3, centers=3, random_state=0)
    one = MixtureModel("gaussian", 3, random_state=0, tol=1e-9, max_iter=500).fit(X)
    two = GaussianMixture(3, covariance_type="diag", random_state=0, tol=1e-9, max_iter=500).fit(X)
    assert one.lower_bound_ == pytest.approx(two.lower_bound_, abs=1e-6)
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-5)
    assert one.bic(X) == pytest.approx(two.bic(X), rel=1e-8)


def drawn(family: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    z = np.repeat([0, 1], 300)
    match family:
        case "bernoulli":
            X = (rng.random((600, 12)) < np.where(z[:, None] == 0, 0.2, 0.8)).astype(float)
        case "categorical":
            X = np.where(
                z[:, None] == 0, rng.integers(0, 2, (600, 8)), rng.integers(1, 4, (600, 8))
            )
        case "multinomial":
            p = [[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]
            X = np.stack([rng.multinomial(20, p[i]) for i in z])
        case "poisson":
            X = rng.poisson(np.where(z[:, None] == 0, 2.0, 9.0), (600, 3))
        case "exponential":
            X = rng.exponential(np.where(z[:, None] == 0, 0.3, 6.0), (600, 6))
        case "student_t":
            X = rng.standard_t(3, (600, 2)) + np.where(z[:, None] == 0, -6.0, 6.0)
        case _:
            mean = np.array([[1.0, 0, 0], [0, 0, 1.0]])
            X = np.concatenate([
                stats.vonmises_fisher(mean[i], 20).rvs(300, random_state=i) for i in (0, 1)
            ])  # fmt: skip
    return np.asarray(X, float), z


FAMILIES = [
    "bernoulli", "categorical", "multinomial", "poisson", "exponential", "student_t",
    "von_mises_fisher",
]  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_families_find_their_components(family: str) -> None:
    X, z = drawn(family, np.random.default_rng(0))
    model = MixtureModel(family, 2, random_state=0, tol=1e-7, max_iter=500).fit(X)
    likelihood = np.array(model.history_.extra["log_likelihood"])
    assert (np.diff(likelihood) >= -(1e-7 if family == "student_t" else 1e-4)).all()
    assert adjusted_rand_score(z, model.predict(X)) > 0.85
    w = np.random.default_rng(1).integers(1, 3, len(X))
    settings = {"random_state": 0, "tol": 1e-6, "max_iter": 300}
    one = MixtureModel(family, 2, **settings).fit(X, sample_weight=w)
    two = MixtureModel(family, 2, **settings).fit(np.repeat(X, w, 0))
    assert one.lower_bound_ == pytest.approx(two.lower_bound_, abs=1e-8)
    if family != "von_mises_fisher":
        again, _ = model.sample(500, random_state=0)
        np.testing.assert_allclose(again.mean(0), X.mean(0), atol=6 * X.std(0).max() / 20)


def test_densities_equal_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    X, _ = drawn("von_mises_fisher", rng)
    model = MixtureModel("von_mises_fisher", 1).fit(X)
    part = model.energy_.families[0]
    peer = stats.vonmises_fisher(
        part.mean[0].detach().double().numpy(), float(part.kappa[0].detach())
    )
    np.testing.assert_allclose(model.score_samples(X[:9]), peer.logpdf(X[:9]), atol=1e-4)
    X, _ = drawn("student_t", rng)
    model = MixtureModel("student_t", 1, max_iter=300).fit(X)
    part = model.energy_.families[0]
    scale = np.diag(part.variance[0].detach().numpy())
    t = stats.multivariate_t(part.mean[0].detach().numpy(), scale, float(part.nu[0].detach()))
    np.testing.assert_allclose(model.score_samples(X[:9]), t.logpdf(X[:9]), atol=1e-4)


def test_columns_of_different_families() -> None:
    rng = np.random.default_rng(0)
    z = np.repeat([0, 1], 200)
    X = np.column_stack(
        [rng.normal(4 * z, 1), rng.integers(0, 2, 400) + 2 * z, rng.poisson(1 + 5 * z)]
    )
    kinds = Columns({0: "gaussian", 1: "categorical", 2: "poisson"})
    model = MixtureModel(kinds, 2, random_state=0).fit(X)
    assert adjusted_rand_score(z, model.predict(X)) > 0.95
    with pytest.raises(ValueError, match=r"columns \[2\] have no family"):
        MixtureModel(Columns({0: "gaussian", 1: "poisson"}), 2).fit(X)
    with pytest.raises(ValueError, match="there is no column 'a'"):
        MixtureModel(Columns({"a": "gaussian"}), 2).fit(X)


def test_values_outside_the_domain() -> None:
    X = np.array([[0.0, 1.0], [1.0, 0.5], [1.0, 0.0]])
    with pytest.raises(
        DataError, match=r"column 1 has 0.5 in row 1; bernoulli components take 0 and 1"
    ):
        MixtureModel("bernoulli", 1).fit(X)
    with pytest.raises(DataError, match="column 0 has -1 in row 0; poisson"):
        MixtureModel("poisson", 1).fit(np.array([[-1.0], [2.0]]))


def test_components_written_as_functions() -> None:
    X, _ = make_blobs(200, 2, centers=2, random_state=3)
    gaussian = GaussianMixture(
        2, covariance_type="diag", means_init=X[:2], random_state=0, reg_covar=0, tol=1e-8, max_iter=500
    ).fit(X)  # fmt: skip

    def component(theta: torch.Tensor) -> torch.distributions.Distribution:
        mean, log_scale = theta.chunk(2, -1)
        return torch.distributions.Normal(mean, log_scale.exp())

    start = np.hstack([X[:2], np.zeros((2, 2))])
    custom = MixtureModel(component, 2, theta_init=start, tol=1e-8, max_iter=300).fit(X)
    assert custom.lower_bound_ == pytest.approx(gaussian.lower_bound_, abs=1e-4)
    assert (np.diff(custom.history_.extra["log_likelihood"]) >= -1e-9).all()
    drawn, _ = custom.sample(100, random_state=0)
    assert drawn.shape == (100, 2)
    with pytest.raises(ValueError, match="needs theta_init"):
        MixtureModel(component, 2).fit(X)


def test_digits_of_bits() -> None:
    X = (load_digits().data >= 8).astype(float)[:600]
    one = MixtureModel("bernoulli", 1).fit(X)
    ten = quiet(MixtureModel("bernoulli", 10, random_state=0, max_iter=60), X)
    assert ten.lower_bound_ > one.lower_bound_ + 4
