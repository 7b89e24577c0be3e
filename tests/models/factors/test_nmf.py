"""NMF: scikit-learn's path from the same start, stationary ends, sparse = dense, weights = repetition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import nnls
from scipy.sparse import csr_matrix
from sklearn import decomposition

from groundstate import NMF
from groundstate.errors import NotConverged
from groundstate.learn.callbacks import Callback
from groundstate.math.linalg.nonnegative.descent import least_squares_codes, sweep
from groundstate.math.linalg.nonnegative.multiplicative import beta_divergence

RNG = np.random.default_rng(0)
X = RNG.random((60, 4)) @ RNG.random((4, 12)) + 0.1 * RNG.random((60, 12))
X[X < 0.6] = 0.0
W0, H0 = RNG.random((60, 4)), RNG.random((4, 12))
LOSSES: list[dict[str, Any]] = [
    {},
    {"alpha_W": 0.01, "l1_ratio": 0.3},
    {"alpha_W": 0.01, "alpha_H": 0.0, "l1_ratio": 1.0},
    {"solver": "mu"},
    {"solver": "mu", "beta_loss": "kullback-leibler"},
    {"solver": "mu", "beta_loss": "kullback-leibler", "alpha_W": 0.01, "l1_ratio": 0.5},
    {"solver": "mu", "beta_loss": 1.5},
    {"solver": "mu", "beta_loss": 3.0},
    {"solver": "mu", "beta_loss": 0.5},
]
short = pytest.mark.filterwarnings("ignore::groundstate.errors.NotConverged")
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@short
@quiet
@pytest.mark.parametrize("given", LOSSES, ids=str)
@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_path_of_the_peer(given: Any, kind: Any, dtype: Any) -> None:
    rows, start = kind(X.astype(dtype)), {"W": W0.astype(dtype), "H": H0.astype(dtype)}
    settings = {"init": "custom", "max_iter": 30, "tol": 1e-8, **given}
    ours, theirs = NMF(4, **settings), decomposition.NMF(4, **settings)
    ours.fit(rows, **start)
    theirs.fit(rows, **{k: v.copy() for k, v in start.items()})
    tol = 1e-9 if dtype == np.float64 else 2e-3
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=tol, atol=tol)
    assert ours.reconstruction_err_ == pytest.approx(theirs.reconstruction_err_, rel=max(tol, 1e-7))
    assert ours.n_iter_ == theirs.n_iter_ and ours.components_.dtype == dtype


@short
@quiet
def test_itakura_saito() -> None:
    settings = {"init": "custom", "solver": "mu", "beta_loss": "itakura-saito", "max_iter": 30}
    ours = NMF(4, **settings).fit(X + 0.1, W=W0, H=H0)
    theirs = decomposition.NMF(4, **settings).fit(X + 0.1, W=W0.copy(), H=H0.copy())
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=1e-9)


@pytest.mark.parametrize("init", ["nndsvd", "nndsvda", "nndsvdar", "random", None])
def test_starts_end_as_low_as_the_peers(init: Any) -> None:
    ours = NMF(4, init=init, max_iter=2000, random_state=0).fit(X)
    theirs = decomposition.NMF(4, init=init, max_iter=2000, random_state=0).fit(X)
    assert ours.reconstruction_err_ < 1.05 * theirs.reconstruction_err_


@pytest.mark.parametrize("given", [*LOSSES[:2], {"alpha_W": 0.01, "l1_ratio": 1.0}], ids=str)
def test_the_end_is_stationary(given: Any) -> None:
    """x ≥ 0, ∇ ≥ 0 and x∇ = 0 for codes and parts (Karush, Kuhn and Tucker)."""
    model = NMF(4, tol=1e-8, max_iter=20_000, **given)
    W, H = model.fit_transform(X), model.components_
    n, d = X.shape
    alpha, share = given.get("alpha_W", 0.0), given.get("l1_ratio", 0.0)
    gW = (W @ H - X) @ H.T + d * alpha * (share + (1 - share) * W)
    gH = W.T @ (W @ H - X) + n * alpha * (share + (1 - share) * H)
    for A, g, tol in ((W, gW, 1e-9), (H, gH, 1e-4)):
        assert (A >= 0).all() and g.min() > -tol
        assert np.abs(A * g).max() < tol


class Watch(Callback):
    def __init__(self) -> None:
        self.seen: list[float] = []

    def on_epoch(self, run: Any) -> None:
        self.seen.append(run.history.objective[-1])


@short
@pytest.mark.parametrize("given", LOSSES, ids=str)
def test_the_objective_never_rises(given: Any) -> None:
    watch = Watch()
    NMF(4, callbacks=[watch], max_iter=60, init="random", random_state=1, **given).fit(X)
    assert len(watch.seen) >= 10
    assert (np.diff(watch.seen) <= 1e-9 * watch.seen[0]).all()


def test_codes_are_non_negative_least_squares() -> None:
    model = NMF(4, max_iter=2000).fit(X)
    expected = np.array([nnls(model.components_.T, row)[0] for row in X])
    np.testing.assert_allclose(model.transform(X), expected, atol=1e-8)
    np.testing.assert_allclose(model.fit_transform(X), expected, atol=1e-8)
    left = 0.5 * ((X - expected @ model.components_) ** 2).sum(1)
    np.testing.assert_allclose(model.energy(X), left, atol=1e-12)
    np.testing.assert_allclose(model.energy(X, z=expected), left, atol=1e-9)
    best = model.infer({"x": X[:5]}, "z")
    np.testing.assert_allclose(best, expected[:5], atol=1e-8)
    np.testing.assert_allclose(
        model.inverse_transform(expected), expected @ model.components_, atol=1e-12
    )


@short
@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler", 1.5])
def test_a_row_has_its_code_whatever_stands_beside_it(loss: Any) -> None:
    model = NMF(4, solver="mu", beta_loss=loss, max_iter=300).fit(X)
    whole = model.transform(X)
    alone = np.concatenate([model.transform(row[None]) for row in X])
    np.testing.assert_allclose(alone, whole, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.transform(csr_matrix(X)), whole, rtol=1e-9, atol=1e-12)
    tensor = model.transform(torch.from_numpy(X))
    assert isinstance(tensor, torch.Tensor)
    np.testing.assert_array_equal(tensor.numpy(), whole)


@short
@pytest.mark.parametrize("init", ["nndsvda", "nndsvdar", "random"])
@pytest.mark.parametrize("given", [LOSSES[1], LOSSES[5], LOSSES[6]], ids=str)
@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_weights_are_repetitions(given: Any, init: str, kind: Any) -> None:
    weight = RNG.integers(0, 4, len(X))
    again = RNG.permutation(np.repeat(np.arange(len(X)), weight))
    settings = {"init": init, "max_iter": 40, "random_state": 0, **given}
    ours = NMF(4, **settings).fit(kind(X), sample_weight=weight)
    repeated = NMF(4, **settings).fit(kind(X[again]))
    np.testing.assert_allclose(ours.components_, repeated.components_, rtol=1e-6, atol=1e-9)
    assert ours.reconstruction_err_ == pytest.approx(repeated.reconstruction_err_, rel=1e-8)


def test_torch_loops_are_the_compiled_ones() -> None:
    """What a GPU runs, on tensors that only say that they are there."""
    G = torch.from_numpy(H0 @ H0.T)
    P = torch.from_numpy(X @ H0.T)
    compiled, moved = torch.from_numpy(W0.copy()), []
    order = torch.tensor([2, 0, 3, 1])
    moved.append(float(sweep(compiled, G, P, order)))

    class Elsewhere(torch.Tensor):
        @property
        def device(self) -> Any:
            return type("Device", (), {"type": "meta"})()

    plain = torch.from_numpy(W0.copy()).as_subclass(Elsewhere)
    moved.append(float(sweep(plain, G, P, order)))
    np.testing.assert_allclose(plain.as_subclass(torch.Tensor), compiled, rtol=1e-12, atol=1e-14)
    assert moved[0] == pytest.approx(moved[1], rel=1e-12)


def test_a_code_of_dependent_parts_is_finite() -> None:
    H = np.vstack([H0, H0[:1], np.zeros(12)])
    codes = least_squares_codes(torch.from_numpy(H @ H.T), torch.from_numpy(X @ H.T))
    best = np.array([nnls(H0.T, row)[1] for row in X])
    np.testing.assert_allclose(np.linalg.norm(X - codes.numpy() @ H, axis=1), best, atol=1e-6)


@pytest.mark.parametrize("beta", [2.0, 1.0, 0.0, 0.5, 1.5, 3.0])
def test_divergences(beta: float) -> None:
    x = torch.rand(3, 5, dtype=torch.float64) + 0.1
    y = (torch.rand(3, 5, dtype=torch.float64) + 0.1).requires_grad_()
    value = beta_divergence(x, y, beta)
    expected = decomposition._nmf._beta_divergence(x.numpy(), y.detach().numpy(), np.eye(5), beta)
    assert value.sum().item() == pytest.approx(expected, rel=1e-10)
    assert torch.autograd.gradcheck(lambda y: beta_divergence(x, y, beta), y)
    assert float(beta_divergence(x, x, beta).abs().max()) < 1e-12


def test_refusals() -> None:
    with pytest.raises(ValueError, match="Negative values in data passed to NMF"):
        NMF(2).fit(-X)
    with pytest.raises(ValueError, match="Negative values in data passed to NMF.transform"):
        NMF(2, max_iter=2000).fit(X).transform(-X)
    with pytest.raises(ValueError, match="beta_loss <= 0 and X contains zeros"):
        NMF(2, solver="mu", beta_loss=0).fit(X)
    with pytest.raises(
        ValueError, match="solver 'cd' does not handle beta_loss = 1.0; use solver='mu'"
    ):
        NMF(2, beta_loss=1.0).fit(X)
    with pytest.raises(ValueError, match="init = 'nndsvd' can only be used when n_components <="):
        NMF(13, init="nndsvd").fit(X)
    with pytest.raises(ValueError, match="pass both"):
        NMF(2, init="custom").fit(X, W=W0)
    with pytest.raises(
        ValueError, match="wrong first dimension passed to NMF .input H.. Expected 2"
    ):
        NMF(2, init="custom").fit(X, W=W0, H=H0)
    with pytest.raises(ValueError, match="full of zeros"):
        NMF(4, init="custom").fit(X, W=W0, H=0 * H0)
    with pytest.raises(TypeError, match="same dtype as X"):
        NMF(4, init="custom").fit(X, W=W0.astype(np.float32), H=H0)
    with pytest.warns(RuntimeWarning, match="ignored"):
        NMF(2, max_iter=2000).fit(X, W=W0, H=H0)
    with pytest.warns(NotConverged, match="Maximum number of iterations 1 reached"):
        NMF(2, max_iter=1).fit(X)


def test_tables_of_few_numbers() -> None:
    one = NMF(1).fit(np.array([[1.0, 2.0], [2.0, 4.0]]))
    np.testing.assert_allclose(one.components_[0, 1] / one.components_[0, 0], 2.0)
    assert one.reconstruction_err_ < 1e-6
    zero = NMF(2).fit(np.zeros((4, 3)))
    assert zero.reconstruction_err_ == 0 and np.isfinite(zero.transform(np.ones((2, 3)))).all()
    wide = NMF("auto", max_iter=5000).fit(X[:5])
    assert wide.components_.shape == (12, 12) and np.isfinite(wide.components_).all()
