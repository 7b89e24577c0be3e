"""Outlier detectors: signs, offsets, the share they flag, and what round distances miss."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.covariance import EllipticEnvelope as PeerEnvelope
from sklearn.metrics import roc_auc_score

from groundstate import (
    EllipticEnvelope,
    EnergyOutlier,
    GaussianMixture,
    KMeans,
    LogisticRegression,
    ProbabilisticPCA,
)
from groundstate.data import make_elongated
from groundstate.errors import Unsupported
from groundstate.infer import energy_moments

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3)) @ RNG.normal(size=(3, 3))


@pytest.mark.parametrize(
    "model",
    [
        EllipticEnvelope(contamination=0.1, random_state=0),
        EnergyOutlier(contamination=0.1),
        EnergyOutlier(GaussianMixture(3, random_state=0), contamination=0.1),
        EnergyOutlier(ProbabilisticPCA(1), contamination=0.1),
    ],
    ids=str,
)
def test_flags_the_share_with_the_peers_signs(model: EnergyOutlier) -> None:
    told = model.fit_predict(X)
    assert set(told.tolist()) == {-1, 1} and abs(int((told == -1).sum()) - 20) <= 1
    score = model.score_samples(X)
    np.testing.assert_allclose(model.decision_function(X), score - model.offset_)
    assert ((model.decision_function(X) < 0) == (told == -1)).all()
    assert model.offset_ == pytest.approx(np.quantile(score, 0.1))
    tensor = model.predict(torch.from_numpy(X))
    assert isinstance(tensor, torch.Tensor) and (tensor.numpy() == told).all()


def test_envelope_is_close_to_the_peer() -> None:
    rows = np.vstack([X, X.mean(0) + 15 + RNG.normal(size=(20, 3))])
    ours = EllipticEnvelope(random_state=0).fit(rows)
    peer = PeerEnvelope(random_state=0).fit(rows)
    np.testing.assert_allclose(ours.location_, peer.location_, atol=0.1)
    np.testing.assert_allclose(ours.covariance_, peer.covariance_, rtol=0.2, atol=0.1)
    assert (ours.predict(rows) == peer.predict(rows)).mean() > 0.97
    assert (ours.predict(rows[200:]) == -1).all() and not ours.support_[200:].any()
    np.testing.assert_allclose(ours.dist_, ours.mahalanobis(rows))
    p = ours.pvalues(X)
    assert p.shape == (200,) and 0.01 < (p < 0.05).mean() < 0.12
    assert ours.score(rows, ours.predict(rows)) == 1.0


@pytest.mark.parametrize("unit", [2.0**-30, 2.0**30])
def test_envelope_in_another_unit(unit: float) -> None:
    """A covariance below 1e-8 was taken for zero."""
    X = np.random.default_rng(1).normal(size=(150, 3)) @ np.diag([3.0, 1.0, 0.1])
    model = EllipticEnvelope(random_state=0).fit(unit * X)
    found = np.asarray(model.covariance_) / unit**2
    np.testing.assert_allclose(found, np.cov(X.T), atol=1.0, rtol=0.5)
    assert (np.asarray(model.predict(unit * X)) == -1).sum() == 15
    for value in (0.0, 0.1, 1e8 / 3):
        with pytest.raises(ValueError, match="equal to 0"):
            EllipticEnvelope(random_state=0).fit(np.full((30, 3), value))


def test_weights_and_order_do_not_matter() -> None:
    w = RNG.integers(0, 3, 200)
    rows = np.repeat(X, w, axis=0)
    for make in (lambda: EllipticEnvelope(random_state=0), EnergyOutlier):
        weighted, repeated = (
            make().fit(X, sample_weight=w),
            make().fit(rows[RNG.permutation(len(rows))]),
        )
        assert weighted.offset_ == pytest.approx(repeated.offset_, rel=1e-8)
        np.testing.assert_allclose(weighted.score_samples(X), repeated.score_samples(X), rtol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_elongated_clouds_need_their_own_unit(seed: int) -> None:
    rows, kind = make_elongated(1000, random_state=seed)
    model = EllipticEnvelope(random_state=0).fit(rows)
    assert roc_auc_score(kind < 0, -model.score_samples(rows)) > 0.99
    assert roc_auc_score(kind < 0, np.linalg.norm(rows - rows.mean(0), axis=1)) < 0.75


def test_models_without_an_energy_of_rows_are_refused() -> None:
    with pytest.raises(Unsupported, match="energy"):
        EnergyOutlier(LogisticRegression()).fit(X)
    from sklearn.mixture import GaussianMixture as Foreign

    with pytest.raises(Unsupported, match="estimator of groundstate"):
        EnergyOutlier(Foreign()).fit(X)


def test_two_uncertainties() -> None:
    model = GaussianMixture(2).fit(np.array([[-3.0], [-1.0], [1.0], [3.0]]))
    model.energy_.from_moments(
        torch.ones(2).double(),
        torch.tensor([[-2.0], [2.0]]).double(),
        torch.ones(2, 1, 1).double() - 1e-6,
    )
    at = np.array([[0.0], [0.5], [2.0]])
    np.testing.assert_allclose(model.energy_variance(at), [0.0, 1.0, 16.0], atol=1e-8)
    np.testing.assert_allclose(
        model.posterior_entropy(at), [0.693147, 0.365334, 0.003018], atol=1e-6
    )
    from groundstate.energy import TableEnergy

    table = TableEnergy(torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64))
    found = energy_moments(table, "x", weights=torch.tensor([0.5, 0.3, 0.2]).double())
    assert (found.mean.item(), found.variance.item()) == (pytest.approx(1.9), pytest.approx(1.29))
    with pytest.raises(AttributeError, match="no attribute .energy_variance"):
        ProbabilisticPCA(1).fit(X).energy_variance(X)
    assert not hasattr(KMeans(2, random_state=0).fit(X), "energy_variance")  # no density
