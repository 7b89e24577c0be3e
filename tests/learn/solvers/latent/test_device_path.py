"""What runs on an accelerator gives what the CPU's compiled loops give; the CPU stands in for one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs

from groundstate import GaussianMixture
from groundstate.compute.random import Key
from groundstate.learn.solvers.latent.kmeans import rows
from groundstate.learn.solvers.latent.kmeans.drawers import TensorDrawer
from groundstate.learn.solvers.latent.kmeans.start import HostDrawer
from groundstate.learn.solvers.latent.kmeans.table import Table
from groundstate.learn.solvers.latent.mixtures import pass_torch, steps


@pytest.mark.parametrize("weighted", [False, True])
def test_starts_are_the_same_rows(weighted: bool) -> None:
    X, _ = make_blobs(4000, 3, centers=9, random_state=0)
    X[2000:2050] = X[:50]
    x = torch.from_numpy(X)
    w = torch.from_numpy(np.random.default_rng(0).uniform(0, 2, len(X))) if weighted else None
    host, other = HostDrawer(x, w, Key.of(1)), TensorDrawer(x, w, Key.of(1))
    assert torch.equal(host.plus_plus(20), other.plus_plus(20))
    assert torch.equal(host.random(20), other.random(20))
    assert torch.equal(host.uniform(4), other.uniform(4))
    some = host.sample(300), other.sample(300)
    assert some[0] is not None and some[1] is not None and torch.equal(some[0], some[1])
    assert host.sample(3950) is None and other.sample(3950) is None  # 3,950 contents, no more


def test_fewer_contents_than_centroids() -> None:
    x = torch.cat([torch.zeros(5, 2), torch.ones(5, 2)]).double()
    host, other = HostDrawer(x, None, Key.of(0)), TensorDrawer(x, None, Key.of(0))
    assert torch.equal(host.plus_plus(4), other.plus_plus(4))
    assert torch.equal(host.random(4), other.random(4))


def test_tables_of_distances() -> None:
    X, _ = make_blobs(500, 4, centers=6, random_state=1)
    x, w = torch.from_numpy(X + 1e3), torch.rand(500, dtype=torch.float64)
    labels, inertia = rows.nearest(x, x[:6], w)
    other, value = Table(x, w).nearest(x[:6])
    assert torch.equal(labels, other) and inertia == pytest.approx(value, rel=1e-12)
    host = rows.CentroidRows(x, w)
    run, table = host.begin(x[:6]), Table(x, w)
    host.assign([run])
    ((label, n, sums),) = table.assign([run.mu], host.origin)
    assert torch.equal(label, run.label)
    torch.testing.assert_close(n, run.n)
    torch.testing.assert_close(sums, run.sums)
    found = table.moments(host.origin.double())[2].sum()
    assert float(found) == pytest.approx(host.spread, rel=1e-12)
    torch.testing.assert_close(table.distances(run.mu, label, host.origin), host._distances(run))


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("weighted", [False, True])
def test_passes_of_em(kind: str, weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = make_blobs(600, 3, centers=4, random_state=0)
    X[:100] = X[0] + 1e-7 * np.random.default_rng(1).normal(size=(100, 3))  # a narrow component
    w = np.random.default_rng(0).uniform(0, 2, len(X)) if weighted else None
    settings: dict[str, Any] = {"tol": 0.0, "max_iter": 5, "reg_covar": 1e-12, "random_state": 0}
    host = GaussianMixture(5, covariance_type=kind, **settings).fit(X, sample_weight=w)
    monkeypatch.setattr(pass_torch, "NUMBERS", 2**11)
    monkeypatch.setattr(steps.GaussianM, "_taken", lambda self, batch, weight: (batch["x"], weight))
    monkeypatch.setattr(
        steps.GaussianM,
        "_sliced",
        lambda self, kernel, x, *rest: iter([getattr(pass_torch, kernel.__name__)(x, *rest)]),
    )
    other = GaussianMixture(5, covariance_type=kind, **settings).fit(X, sample_weight=w)
    np.testing.assert_allclose(other.means_, host.means_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(other.covariances_, host.covariances_, rtol=1e-6, atol=1e-11)
    np.testing.assert_allclose(other.lower_bounds_, host.lower_bounds_, rtol=1e-7)
