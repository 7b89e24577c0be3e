"""A finite variable listed value by value, and the other solved for."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import torch
from scipy import stats
from sklearn.datasets import load_iris
from tests.infer.helpers_infer import F64, close, seed

import groundstate
from groundstate.energy import CentroidEnergy, GaussianMixtureEnergy
from groundstate.energy.classes.discriminant import GaussianClassEnergy
from groundstate.infer import ByValue, marginalise, minimise, sample
from groundstate.infer.dispatch import choose
from groundstate.models.tables.table import TablePredictor


def classes(covariance: str) -> GaussianClassEnergy:
    X, y = load_iris(return_X_y=True)
    energy = GaussianClassEnergy(3, 4, covariance, dtype=F64)
    x, labels = torch.from_numpy(X), torch.from_numpy(y)
    energy.centre(x, labels, None)
    energy.from_stats(energy.stats(None, x=x, y=labels))
    return energy.double()


X = torch.from_numpy(load_iris().data[[0, 60, 120, 149]])
GONE = torch.tensor([[0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]], dtype=torch.bool)


@pytest.mark.parametrize("covariance", ["diag", "tied", "full"])
def test_a_class_and_gaps_of_its_row(covariance: str) -> None:
    energy = classes(covariance)
    free, given = {"x": GONE, "y": None}, {"x": torch.where(GONE, 0.0, X)}
    assert type(choose(energy, "minimise", free, given)) is ByValue
    found = minimise(energy, free, given)
    assert found.exact and bool((found["x"] == X)[~GONE].all())
    for k in range(3):  # no class with its own best features lies lower
        given_k = {**given, "y": torch.full((4,), k)}
        assert bool((found.energy <= minimise(energy, {"x": GONE}, given_k).energy + 1e-9).all())
    moved = torch.where(GONE, found["x"] + 0.01 * torch.randn(4, 4, dtype=F64), X)
    assert bool((energy(x=moved, y=found["y"]) >= found.energy - 1e-9).all())


@pytest.mark.parametrize("covariance", ["diag", "tied", "full"])
def test_its_free_energy_is_that_of_what_is_seen(covariance: str) -> None:
    energy = classes(covariance)
    F = marginalise(energy, {"x": GONE, "y": None}, {"x": torch.where(GONE, 0.0, X)}).value
    mu, prior = energy.mu.detach().numpy(), energy.log_prior.exp().detach().numpy()
    for i in range(4):
        there = np.flatnonzero(~GONE[i].numpy())
        density = 0.0
        for k in range(3):
            U = energy.U.detach().numpy()
            U = U[k] if covariance != "tied" else U
            sigma = (
                np.diag(U**-2.0)
                if covariance == "diag"
                else np.linalg.inv(np.triu(U) @ np.triu(U).T)
            )
            known = (
                stats.multivariate_normal(mu[k][there], sigma[np.ix_(there, there)])
                if len(there)
                else None
            )
            density += prior[k] * (1.0 if known is None else known.pdf(X[i, there].numpy()))
        assert F[i].item() == pytest.approx(-np.log(density), abs=1e-6)


def test_draws_have_the_shares_of_the_classes() -> None:
    energy = classes("full")
    gone = torch.tensor([[False, False, True, True]])
    x = torch.tensor([[6.0, 2.9, 0.0, 0.0]], dtype=F64)
    drawn = sample(energy, {"x": gone, "y": None}, {"x": x}, n=4000, generator=seed(1))
    assert drawn.kind == "exact" and drawn["x"].shape == (4000, 1, 4)
    assert bool((drawn["x"][..., :2] == x[0, :2]).all())
    F = torch.stack([
        marginalise(energy, {"x": gone}, {"x": x, "y": torch.tensor([k])}).value for k in range(3)
    ])  # fmt: skip
    share = torch.bincount(drawn["y"][:, 0], minlength=3) / 4000
    close(share.double(), torch.softmax(-F[:, 0], 0).detach(), 0.03)


def test_blocks_of_rows_change_nothing() -> None:
    energy = classes("full")
    free, given = {"x": GONE, "y": None}, {"x": torch.where(GONE, 0.0, X)}
    whole, parts = ByValue(), ByValue(chunk=16)
    close(
        minimise(energy, free, given, method=whole)["x"],
        minimise(energy, free, given, method=parts)["x"],
    )
    F = [marginalise(energy, free, given, method=m).value for m in (whole, parts)]
    close(F[0], F[1])


def test_a_mixture_at_its_highest_peak() -> None:
    energy = GaussianMixtureEnergy(2, 1)
    with torch.no_grad():
        energy.mu.copy_(torch.tensor([[-3.0], [3.0]]))
        energy.logits.copy_(torch.tensor([0.0, 1.0]))
    found = minimise(energy, ("x", "z"))
    assert (found["z"].item(), found["x"].item(), found.exact) == (1, 3.0, True)


@pytest.mark.parametrize(
    "name", ["GaussianNB", "LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"]
)
def test_a_classifier_fills_gaps_of_rows_without_a_label(name: str) -> None:
    table = groundstate.data.read("iris")
    model = TablePredictor(getattr(groundstate, name)()).fit(table)
    rows = table.features.frame[[0, 60, 120]]
    column = rows.columns[2]
    gaps = rows.with_columns(pl.Series(column, [None, None, 6.0]))
    found = model.infer({"x": gaps}, ("x", "y"))
    assert np.abs(found["x"][column].to_numpy() - [1.4, 3.5, 6.0]).max() < 0.8
    assert found["y"].tolist()[0] == "setosa"
    assert found["x"].drop(column).equals(gaps.drop(column))


def test_a_cluster_and_gaps_of_its_row() -> None:
    energy = CentroidEnergy(3, 4).double()
    with torch.no_grad():
        energy.mu.copy_(X[:3] + 0.1)
    free, given = {"x": GONE, "z": None}, {"x": torch.where(GONE, 0.0, X)}
    found = minimise(energy, free, given)
    away = (X[:, None] - energy.mu).square().masked_fill(GONE[:, None], 0.0).sum(2) / 2  # (B, k)
    best, z = away.min(1)
    close(found.energy, best)
    assert found.exact and bool((found["x"] == X)[~GONE].all())
    assert bool((found["z"] == z)[:3].all())  # of the last row nothing is known
    assert bool((found["x"] == energy.mu[found["z"]])[GONE].all())
    volume = 0.5 * GONE.sum(1) * np.log(2 * np.pi)
    close(marginalise(energy, free, given).value, -torch.logsumexp(-away, 1) - volume)
