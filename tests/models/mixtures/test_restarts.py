"""Starts that share their passes end where they end alone; rows in pieces, in files, over processes."""

from __future__ import annotations

import itertools
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from sklearn.datasets import make_blobs

from groundstate import BayesianGaussianMixture, GaussianMixture
from groundstate.compute import run_local
from groundstate.compute.random import Key
from groundstate.data import Rereadable
from groundstate.energy.latent.gaussian_mixture import GaussianMixtureEnergy
from groundstate.errors import DataError, NotConverged
from groundstate.learn import NLL, Callback, MixtureEM, Run, fit
from groundstate.learn.base import Problem
from groundstate.learn.solvers.latent.mixtures import starts
from groundstate.learn.solvers.latent.mixtures.mixture_em import start_mixture

KINDS = ["full", "tied", "diag", "spherical", "identity"]


def table(n: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    X, _ = make_blobs(n, 4, centers=6, cluster_std=1.5, random_state=0)
    X[-200:] = X[:200]
    return X, np.random.default_rng(0).integers(0, 3, n).astype(float)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("init", ["random_from_data", "kmeans"])
def test_starts_end_where_they_end_alone(kind: str, init: str) -> None:
    X, w = table(800)
    x, weight = torch.from_numpy(X), torch.from_numpy(w)
    settings: dict[str, Any] = {"max_iter": 30, "tol": 1e-3, "init": init}
    alone = []
    for i in range(4):
        energy = GaussianMixtureEnergy(5, 4, kind, reg_covar=1e-2).double()
        problem = Problem(energy, NLL(), {"x": x}, weight, key=Key.of(3))
        start_mixture(problem, MixtureEM(**settings), i)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)
            history = MixtureEM(max_iter=30, tol=1e-3).run(problem)
        alone.append((history, energy))
    energy = GaussianMixtureEnergy(5, 4, kind, reg_covar=1e-2).double()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        found = MixtureEM(n_init=4, **settings).run(
            Problem(energy, NLL(), {"x": x}, weight, key=Key.of(3))
        )
    ends = [-history.objective[-1] for history, _ in alone]
    np.testing.assert_allclose(found.extra["restarts"], ends, rtol=1e-9)
    history, best = alone[int(np.argmax(ends))]
    assert found.n_iter == history.n_iter and found.converged == history.converged
    np.testing.assert_allclose(found.objective, history.objective, rtol=1e-9)
    for name, value in best.state_dict().items():
        np.testing.assert_allclose(energy.state_dict()[name], value, atol=1e-7, err_msg=name)


def test_narrow_components_of_one_start_do_not_disturb_another() -> None:
    """Components on repeated rows are measured by differences, others by features."""
    for kind, seed in itertools.product(KINDS[:4], range(3)):
        rng = np.random.default_rng(seed)
        X = np.concatenate([np.repeat(rng.normal(size=(3, 2)), 40, 0), rng.normal(0, 1, (200, 2))])
        X[:120] += 1e-7 * rng.normal(size=(120, 2))
        settings: dict[str, Any] = {
            "covariance_type": kind, "random_state": 0, "init_params": "k-means++",
            # a needle through two of the groups is no thinner than its large entries can hold
            "reg_covar": 1e-9 if kind == "full" else 1e-14, "max_iter": 20, "tol": 0.0,
        }  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)
            one = GaussianMixture(5, n_init=1, **settings).fit(X)
            many = GaussianMixture(5, n_init=3, **settings).fit(X)
        assert many.restarts_[0] == pytest.approx(one.lower_bound_, rel=1e-6), (kind, seed)
        assert many.lower_bound_ == pytest.approx(max(many.restarts_))
        assert many.score(X) == pytest.approx(many.lower_bound_, rel=1e-6)


class Stop(Callback):
    def __init__(self, x: torch.Tensor) -> None:
        self.x = x
        self.seen: list[float] = []

    def on_epoch(self, run: Run) -> bool:
        self.seen.append(NLL()(run.energy, {"x": self.x}).loss.mean().item())
        return len(self.seen) == 3


def test_callbacks_see_the_best_start() -> None:
    X, _ = table(500)
    one = GaussianMixture(4, n_init=3, random_state=0, max_iter=50, tol=1e-4).fit(X)
    assert len(one.restarts_) == 3 and one.lower_bound_ == pytest.approx(max(one.restarts_))
    turns = GaussianMixture(
        4, n_init=2, random_state=0, batch_size=50, max_iter=3, init_params="random_from_data"
    ).fit(X)
    assert len(turns.restarts_) == 2
    energy = GaussianMixtureEnergy(4, 4).double()
    stop = Stop(torch.from_numpy(X))
    solver = MixtureEM(n_init=3, init="k-means++", tol=None, max_iter=50)
    history = fit(energy, {"x": stop.x}, NLL(), solver, callbacks=[stop])
    assert history.n_iter == 3 and stop.seen[-1] == pytest.approx(history.objective[-1])


# --- rows that are not in memory -------------------------------------------------------------


def on_disk(X: np.ndarray, folder: Path) -> Any:
    np.save(folder / "x.npy", X)
    return np.load(folder / "x.npy", mmap_mode="r")


def forms(X: np.ndarray, folder: Path) -> dict[str, Any]:
    """The same rows in every form that is not an array in memory."""
    parts = [X[a:b] for a, b in pairwise([0, 700, 701, 1900, len(X)])]
    for i, part in enumerate(parts):
        pl.DataFrame(part, schema=list("abcd")).write_parquet(folder / f"{i}.parquet")
    return {
        "generator": iter(parts),
        "read again": Rereadable(lambda: iter(parts)),
        "files": sorted(folder.glob("*.parquet")),
        "memory map": on_disk(X, folder),
    }


def same(model: Any, whole: Any, tol: float = 1e-9) -> None:
    for name in ("weights_", "means_", "covariances_"):
        np.testing.assert_allclose(getattr(model, name), getattr(whole, name), rtol=tol, atol=tol)
    assert model.lower_bound_ == pytest.approx(whole.lower_bound_, rel=tol)
    assert model.n_iter_ == whole.n_iter_


@pytest.mark.parametrize("make", [GaussianMixture, BayesianGaussianMixture])
@pytest.mark.parametrize("init", ["kmeans", "random_from_data"])
def test_every_form_gives_the_same(make: Any, init: str, tmp_path: Path) -> None:
    X, _ = table()
    settings = {"init_params": init, "n_init": 2, "random_state": 0, "max_iter": 500, "tol": 1e-2}
    whole = make(4, **settings).fit(X)
    for name, form in forms(X, tmp_path).items():
        model = make(4, **settings).fit(form)
        same(model, whole)
        assert ("feature_names_in_" in vars(model)) == (name == "files")


@pytest.mark.parametrize("kind", KINDS)
def test_covariances_and_weights_of_a_stream(kind: str, tmp_path: Path) -> None:
    X, w = table()
    settings: dict[str, Any] = {"covariance_type": kind, "random_state": 0}
    whole = GaussianMixture(4, **settings).fit(X, sample_weight=w)
    same(GaussianMixture(4, **settings).fit(on_disk(X, tmp_path), sample_weight=w), whole)
    same(GaussianMixture(4, **settings).fit(iter([(X[:900], w[:900]), (X[900:], w[900:])])), whole)


def test_missing_values_and_mini_batches_of_a_stream(tmp_path: Path) -> None:
    X, _ = table()
    gaps = X.copy()
    gaps[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    whole = GaussianMixture(2, random_state=0).fit(gaps)
    same(GaussianMixture(2, random_state=0).fit(iter([gaps[:900], gaps[900:]])), whole)
    settings: dict[str, Any] = {"batch_size": 200, "max_iter": 3, "random_state": 0}
    same(
        GaussianMixture(3, **settings).fit(on_disk(X, tmp_path)),
        GaussianMixture(3, **settings).fit(X),
    )
    X[5, 1] = np.inf
    with pytest.raises(DataError, match="contains inf in row 5, column 1"):
        GaussianMixture(2).fit(iter([X]))
    with pytest.raises(ValueError, match="n_components = 3, n_samples = 2"):
        GaussianMixture(3).fit(iter([X[:2]]))


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_a_sample_starts_many_rows(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights are repetitions, order and storage do not matter, where a sample finds the clusters."""
    monkeypatch.setattr(starts, "SAMPLE", 512)
    X, w = table(2000)
    setting: dict[str, Any] = {"covariance_type": kind, "max_iter": 2, "tol": 0, "random_state": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        model = GaussianMixture(6, **setting).fit(X, sample_weight=w)
        repeated = GaussianMixture(6, **setting).fit(np.repeat(X, w.astype(int), axis=0)[::-1])
        disk = GaussianMixture(6, **setting).fit(on_disk(X, tmp_path))
        whole = GaussianMixture(6, **setting).fit(X)
    np.testing.assert_allclose(repeated.means_, model.means_, atol=1e-9)
    np.testing.assert_allclose(disk.means_, whole.means_, atol=1e-9)


def shard(rank: int) -> dict[str, Any]:
    X, w = table()
    rows = slice(0, 1300) if rank == 0 else slice(1300, None)
    found: dict[str, Any] = {}
    for kind in KINDS[:4]:
        model = GaussianMixture(4, covariance_type=kind, n_init=2, random_state=0)
        model.fit(iter([(X[rows], w[rows])]))
        found[kind] = (torch.as_tensor(np.array(model.means_)), model.lower_bound_)
    bayes = BayesianGaussianMixture(4, random_state=0, max_iter=500, tol=1e-2)
    bayes.fit(X[rows], sample_weight=w[rows])
    found["bayes"] = (torch.as_tensor(np.array(bayes.means_)), bayes.lower_bound_)
    return found


@pytest.mark.slow
def test_two_processes_with_a_stream_each() -> None:
    X, w = table()
    parts = run_local(shard, 2)
    for kind in KINDS[:4]:
        whole = GaussianMixture(4, covariance_type=kind, n_init=2, random_state=0)
        whole.fit(X, sample_weight=w)
        for part in parts:
            np.testing.assert_allclose(part[kind][0], whole.means_, atol=1e-8)
            assert part[kind][1] == pytest.approx(whole.lower_bound_, rel=1e-10)
    bayes = BayesianGaussianMixture(4, random_state=0, max_iter=500, tol=1e-2)
    bayes.fit(X, sample_weight=w)
    for part in parts:
        np.testing.assert_allclose(part["bayes"][0], bayes.means_, atol=1e-8)
        assert part["bayes"][1] == pytest.approx(bayes.lower_bound_, rel=1e-10)


@pytest.mark.parametrize("n_init", [1, 3])
def test_no_iterations_leave_the_start(n_init: int) -> None:
    X, _ = table(300)
    means = X[[0, 100, 200]]
    model = GaussianMixture(3, means_init=means, max_iter=0, n_init=n_init, random_state=0).fit(X)
    np.testing.assert_array_equal(model.means_, means)
    assert model.lower_bound_ == pytest.approx(model.score(X)) and not model.converged_


class Early(Callback):
    def on_step(self, run: Run) -> bool:
        return run.total_steps >= 2


def test_a_callback_may_stop_the_first_pass() -> None:
    X, _ = table(500)
    energy = GaussianMixtureEnergy(3, 4).double()
    solver = MixtureEM(batch_size=50, tol=None, init="k-means++")
    history = fit(energy, {"x": torch.from_numpy(X)}, NLL(), solver, callbacks=[Early()])
    assert history.stop == "callback" and history.extra["restarts"] == []
