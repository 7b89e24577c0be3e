"""PCA: scikit-learn's numbers by every solver, nested planes, and rows however they come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from scipy.linalg import subspace_angles
from scipy.sparse import csr_matrix, random_array
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA as Peer
from sklearn.decomposition import TruncatedSVD as PeerSVD

from groundstate import PCA, IncrementalPCA, TruncatedSVD, Whitener
from groundstate.compute import run_local
from groundstate.data import Rereadable
from groundstate.energy import LinearCodeEnergy
from groundstate.learn import Naive, PrincipalAxes
from groundstate.learn.base import Problem

IRIS = load_iris().data
DIGITS = load_digits().data
SOLVERS = ["full", "covariance_eigh", "randomized", "arpack", "power"]
SHOWN = ("explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_")


def gapped(n: int = 600, d: int = 30, seed: int = 0) -> np.ndarray:
    """Rows whose variances halve from axis to axis, four times."""
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
    sd = np.r_[8.0, 4.0, 2.0, 1.0, np.full(d - 4, 0.3)]
    return (rng.normal(size=(n, d)) * sd) @ turn.T + rng.normal(size=d)


def test_worked_examples() -> None:
    X = np.array([[2.0, 0], [-2, 0], [0, 1], [0, -1]])
    model = PCA().fit(X)
    np.testing.assert_allclose(model.explained_variance_, [8 / 3, 2 / 3])
    np.testing.assert_allclose(model.explained_variance_ * 3 / 4, [2.0, 0.5])  # by n
    np.testing.assert_allclose(model.components_, np.eye(2), atol=1e-15)
    model = PCA(2).fit(IRIS)
    np.testing.assert_allclose(model.explained_variance_, [4.228242, 0.242671], atol=1e-6)
    np.testing.assert_allclose(model.explained_variance_ratio_, [0.924619, 0.053066], atol=1e-6)
    assert model.noise_variance_ == pytest.approx(0.051022, abs=1e-6)
    assert model.score(IRIS) == pytest.approx(-2.699797, abs=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("X", [gapped(), gapped(20, 30), IRIS], ids=["tall", "wide", "iris"])
def test_every_solver_agrees_with_the_peer(solver: str, X: np.ndarray) -> None:
    model = PCA(2, svd_solver=solver, random_state=0).fit(X)
    peer = Peer(2, svd_solver="full").fit(X)
    for name in (*SHOWN, "noise_variance_"):
        np.testing.assert_allclose(getattr(model, name), getattr(peer, name), rtol=1e-8)
    assert subspace_angles(model.components_.T, peer.components_.T).max() < 1e-6
    np.testing.assert_allclose(model.components_, peer.components_, atol=1e-6)
    np.testing.assert_allclose(model.transform(X), peer.transform(X), atol=1e-5)
    np.testing.assert_allclose(model.score_samples(X), peer.score_samples(X), rtol=1e-6)
    np.testing.assert_allclose(model.get_covariance(), peer.get_covariance(), atol=1e-6)
    np.testing.assert_allclose(model.get_precision(), peer.get_precision(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("count", [None, 3, 0.9, "mle"])
@pytest.mark.parametrize("whiten", [False, True])
def test_number_of_axes_and_whitening(count: Any, whiten: bool) -> None:
    X = gapped(400, 12)
    model, peer = PCA(count, whiten=whiten).fit(X), Peer(count, whiten=whiten).fit(X)
    assert model.n_components_ == peer.n_components_
    np.testing.assert_allclose(model.transform(X), peer.transform(X), atol=1e-8)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)),
                               peer.inverse_transform(peer.transform(X)), atol=1e-8)  # fmt: skip
    if whiten:
        np.testing.assert_allclose(np.cov(model.transform(X).T), np.eye(model.n_components_),
                                   atol=1e-8)  # fmt: skip


def test_scores_are_uncorrelated_planes_nested_and_errors_twice_the_energy() -> None:
    model = PCA(3).fit(IRIS)
    cov = np.cov(model.transform(IRIS).T)
    np.testing.assert_allclose(cov - np.diag(np.diag(cov)), 0, atol=1e-10)
    for k in (1, 2):
        np.testing.assert_allclose(PCA(k).fit(IRIS).components_, model.components_[:k], atol=1e-12)
    left = IRIS - model.inverse_transform(model.transform(IRIS))
    np.testing.assert_allclose(model.reconstruction_error(IRIS), (left**2).sum(1), atol=1e-12)
    np.testing.assert_allclose(model.energy(IRIS) * 2, (left**2).sum(1), atol=1e-12)
    np.testing.assert_allclose(model.infer({"x": IRIS}, "z"), model.transform(IRIS))


def test_small_variances_that_the_covariance_loses_come_from_the_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * [1.0, 1e-9, 1.0]
    model = PCA().fit(X)
    assert model.history_.about["svd_solver"] == "full"
    np.testing.assert_allclose(model.explained_variance_, Peer(svd_solver="full").fit(X)
                               .explained_variance_, rtol=1e-6)  # fmt: skip
    assert PCA(2).fit(X).history_.about["svd_solver"] == "covariance_eigh"


def test_lauchli() -> None:
    """Of [[1, 1], [ε, 0], [0, ε]] the rows keep σ₂ = ε, their squares lose it."""
    X = torch.tensor([[1.0, 1.0], [1e-8, 0.0], [0.0, 1e-8]], dtype=torch.float64)
    energy = LinearCodeEnergy(2, 2, centred=False).double()
    PrincipalAxes(2, "full").run(Problem(energy, Naive(latent="minimise"), {"x": X}))
    assert float((energy.variance[1] * 3).sqrt()) == pytest.approx(1e-8, rel=1e-7)
    assert float(torch.linalg.eigvalsh(X.T @ X)[0]) < 1e-17


def test_power_without_the_constraint_finds_the_first_axis_again() -> None:
    X = gapped(300, 6)
    first = PCA(1, svd_solver="power", random_state=0).fit(X).components_[0]
    again = PCA(1, svd_solver="power", random_state=1).fit(X).components_[0]
    np.testing.assert_allclose(first, again, atol=1e-8)
    second = PCA(2, svd_solver="power", random_state=1).fit(X).components_[1]
    assert abs(first @ second) < 1e-10


def test_auto_takes_the_way_that_fits_the_shape() -> None:
    rng = np.random.default_rng(0)
    taken = {}
    for n, d, k in ((1000, 50, 5), (600, 80, 5), (600, 80, 79), (100, 50, 5)):
        model = PCA(k, random_state=0).fit(rng.normal(size=(n, d)))
        taken[n, d, k] = model.history_.about["svd_solver"]
    assert list(taken.values()) == ["covariance_eigh", "randomized", "full", "full"]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", ["auto", "arpack", "randomized", "covariance_eigh"])
def test_sparse_rows_are_dense_rows(solver: str, weighted: bool) -> None:
    X = random_array((300, 60), density=0.1, rng=np.random.default_rng(0), format="csr")
    w = np.arange(300) % 3 if weighted else None
    sparse = PCA(4, svd_solver=solver, iterated_power=80, random_state=0).fit(X, sample_weight=w)
    dense = PCA(4, svd_solver="full").fit(X.toarray(), sample_weight=w)
    for name in (*SHOWN, "noise_variance_"):
        np.testing.assert_allclose(
            getattr(sparse, name), getattr(dense, name), rtol=1e-6, atol=1e-9
        )
    np.testing.assert_allclose(sparse.transform(X), dense.transform(X.toarray()), atol=1e-4)
    np.testing.assert_allclose(sparse.energy(X), dense.energy(X.toarray()), rtol=1e-4)


def test_weights_are_repetitions_and_order_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    for X in (IRIS, gapped(25, 40)):
        w = rng.integers(0, 3, len(X))
        index = rng.permutation(np.repeat(np.arange(len(X)), w))
        for count in (2, None):
            a, b = PCA(count).fit(X, sample_weight=w), PCA(count).fit(X[index])
            np.testing.assert_allclose(a.explained_variance_, b.explained_variance_, atol=1e-8)
            np.testing.assert_allclose(a.components_, b.components_, atol=1e-7)
            assert a.noise_variance_ == pytest.approx(b.noise_variance_, abs=1e-10)


# --- rows however they come ----------------------------------------------------------------


def chunks(X: np.ndarray) -> list[np.ndarray]:
    return [X[:7], X[7:40], X[40:]]


@pytest.mark.parametrize(
    "make", [lambda: PCA(3), lambda: IncrementalPCA(3), lambda: Whitener("pca")]
)
def test_pieces_are_the_whole(make: Any, tmp_path: Path) -> None:
    whole = make().fit(IRIS)
    np.save(tmp_path / "rows.npy", IRIS)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    frame = pl.DataFrame(IRIS, schema=["a", "b", "c", "d"])
    frame[:60].write_parquet(tmp_path / "0.parquet")
    frame[60:].write_parquet(tmp_path / "1.parquet")
    ways = {
        "generator": iter(chunks(IRIS)),
        "again and again": Rereadable(lambda: iter(chunks(IRIS))),
        "pairs": iter([(part, np.ones(len(part))) for part in chunks(IRIS)]),
        "memory map": mapped,
        "files": [tmp_path / "0.parquet", tmp_path / "1.parquet"],
    }
    for name, X in ways.items():
        model = make().fit(X)
        np.testing.assert_allclose(model.transform(frame if name == "files" else IRIS),
                                   whole.transform(IRIS), rtol=1e-9, atol=1e-10, err_msg=name)  # fmt: skip
    assert make().fit(ways["files"]).feature_names_in_.tolist() == ["a", "b", "c", "d"]


def test_streams_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="gives no rows"):
        PCA(1).fit(iter([]))
    with pytest.raises(ValueError, match="piece of 3 columns; the first has 4"):
        PCA(1).fit(iter([IRIS, IRIS[:, :3]]))
    with pytest.raises(ValueError, match="NaN or infinity"):
        PCA(1).fit(iter([IRIS, np.full((2, 4), np.nan)]))
    with pytest.raises(ValueError, match="weights of a stream come with its pieces"):
        PCA(1).fit(iter([IRIS]), sample_weight=np.ones(150))
    with pytest.raises(ValueError, match="n_components=5 must be between"):
        PCA(5).fit(iter([IRIS]))
    with pytest.raises(ValueError, match="rows of numbers"):
        PCA(1).fit(iter([np.array([["a", "b"]])]))


def shard(rank: int) -> dict[str, Any]:
    rows = IRIS[:70] if rank == 0 else IRIS[70:]
    model, stream = PCA(3).fit(rows), PCA(3).fit(iter([rows[:30], rows[30:]]))
    return {
        "axes": torch.from_numpy(np.array(model.components_)),
        "noise": model.noise_variance_,
        "of a stream": torch.from_numpy(np.array(stream.components_)),
    }


@pytest.mark.slow
def test_two_processes_are_one() -> None:
    whole = PCA(3).fit(IRIS)
    for part in run_local(shard, 2):
        for name in ("axes", "of a stream"):
            np.testing.assert_allclose(part[name], whole.components_, atol=1e-12, err_msg=name)
        assert part["noise"] == pytest.approx(whole.noise_variance_)


# --- batch by batch ------------------------------------------------------------------------


def test_incremental_is_exact_for_any_batches_in_any_order() -> None:
    whole = PCA(3).fit(DIGITS)
    rng = np.random.default_rng(0)
    for sizes in ([100], [7, 500], [1797]):
        model, order, at = IncrementalPCA(3), rng.permutation(len(DIGITS)), 0
        while at < len(DIGITS):
            step = sizes[at % len(sizes)]
            model.partial_fit(DIGITS[order[at : at + step]])
            at += step
        np.testing.assert_allclose(model.components_, whole.components_, atol=1e-10)
        np.testing.assert_allclose(model.explained_variance_, whole.explained_variance_, rtol=1e-10)
        assert model.n_samples_seen_ == len(DIGITS)
        np.testing.assert_allclose(model.var_, DIGITS.var(0), atol=1e-10)


def test_incremental_models_merge() -> None:
    a, b = IncrementalPCA(2).fit(IRIS[:50]), IncrementalPCA(2).fit(IRIS[50:])
    np.testing.assert_allclose(a.merge(b).components_, PCA(2).fit(IRIS).components_, atol=1e-10)
    with pytest.raises(ValueError, match="method='exact' keeps"):
        a.merge(IncrementalPCA(2, method="sketch").fit(IRIS))


def test_far_from_the_origin_nothing_cancels() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 1))
    far = x + 1e8
    model = IncrementalPCA(1).partial_fit(far[:500]).partial_fit(far[500:])
    assert model.explained_variance_[0] == pytest.approx(far.var(ddof=1), rel=1e-7)
    naive = (far**2).mean() - far.mean() ** 2
    assert abs(naive - far.var()) > 0.1


def test_sketch_is_the_peer_and_oja_comes_near() -> None:
    from sklearn.decomposition import IncrementalPCA as PeerBatches

    model = IncrementalPCA(5, method="sketch", batch_size=200).fit(DIGITS)
    peer = PeerBatches(5, batch_size=200).fit(DIGITS)
    for name in ("components_", "explained_variance_", "mean_", "var_", "noise_variance_"):
        np.testing.assert_allclose(getattr(model, name), getattr(peer, name), rtol=1e-6, atol=1e-8)
    X = gapped(5000, 10)
    oja = IncrementalPCA(2, method="oja", batch_size=50, random_state=0).fit(X)
    assert subspace_angles(oja.components_.T, PCA(2).fit(X).components_.T).max() < 0.05


def test_incremental_refuses() -> None:
    with pytest.raises(ValueError, match="invalid for n_features=4"):
        IncrementalPCA(5).fit(IRIS)
    with pytest.raises(ValueError, match="batch number of samples 3"):
        IncrementalPCA(4, method="sketch").partial_fit(IRIS[:3])
    with pytest.raises(TypeError, match="does not support sparse"):
        IncrementalPCA(2).partial_fit(csr_matrix(IRIS))
    with pytest.raises(ValueError, match="whole numbers"):
        IncrementalPCA(2, method="sketch").fit(IRIS, sample_weight=np.full(150, 0.5))


# --- not centred, and white ----------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["randomized", "arpack"])
def test_truncated_svd_is_the_peers(algorithm: str) -> None:
    X = random_array((120, 80), density=0.2, rng=np.random.default_rng(0), format="csr")
    model = TruncatedSVD(5, algorithm=algorithm, n_iter=40, random_state=0).fit(X)
    peer = PeerSVD(5, algorithm="arpack", random_state=0).fit(X)
    for name in ("singular_values_", "explained_variance_", "explained_variance_ratio_"):
        np.testing.assert_allclose(getattr(model, name), getattr(peer, name), rtol=1e-6)
    np.testing.assert_allclose(np.abs(model.components_), np.abs(peer.components_), atol=1e-6)
    codes = model.transform(X)
    np.testing.assert_allclose(codes, X @ model.components_.T, atol=1e-10)
    np.testing.assert_allclose(model.inverse_transform(codes), codes @ model.components_)
    with pytest.raises(ValueError, match=r"n_components\(81\) must be <= n_features\(80\)"):
        TruncatedSVD(81).fit(X)


@pytest.mark.parametrize("shape", [(300, 60), (60, 300)], ids=["tall", "wide"])
def test_variances_of_few_random_vectors_are_those_of_the_codes(shape: tuple[int, int]) -> None:
    X = np.random.default_rng(0).normal(size=shape)  # singular values that fall slowly
    w = np.random.default_rng(1).integers(1, 4, shape[0]).astype(float)
    for weight in (None, w):
        model = PCA(5, svd_solver="randomized", iterated_power=1, random_state=0).fit(
            X, sample_weight=weight
        )
        cov = np.cov(model.transform(X).T, fweights=None if weight is None else w.astype(int))
        np.testing.assert_allclose(cov, np.diag(model.explained_variance_), rtol=1e-9, atol=1e-9)
    svd = TruncatedSVD(5, n_iter=1, random_state=0).fit(X)
    codes = svd.transform(X)
    np.testing.assert_allclose(svd.explained_variance_, codes.var(0), rtol=1e-9)
    np.testing.assert_allclose(svd.singular_values_, np.linalg.norm(codes, axis=0), rtol=1e-9)


@pytest.mark.parametrize("method", ["zca", "pca", "cholesky"])
def test_whitened_rows_have_unit_covariance(method: str) -> None:
    model = Whitener(method).fit(IRIS)
    Z = model.transform(IRIS)
    np.testing.assert_allclose(np.cov(Z.T, ddof=0), np.eye(4), atol=1e-10)
    np.testing.assert_allclose(model.inverse_transform(Z), IRIS, atol=1e-10)
    sigma = np.cov(IRIS.T, ddof=0)
    np.testing.assert_allclose(
        model.whitening_.T @ model.whitening_, np.linalg.inv(sigma), rtol=1e-8
    )
    centred = IRIS - IRIS.mean(0)
    square = np.einsum("ni,ij,nj->n", centred, np.linalg.inv(sigma), centred)
    np.testing.assert_allclose(2 * model.energy(IRIS), square, rtol=1e-8)
    if method == "cholesky":
        with pytest.raises(ValueError, match="singular"):
            Whitener(method).fit(np.column_stack([IRIS, IRIS[:, 0]]))


def test_a_linear_autoencoder_ends_at_the_same_plane() -> None:
    from groundstate.experiments.unsupervised.pca_ways import SD, autoencoder

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)) * SD
    X -= X.mean(0)
    decoder, loss = autoencoder(X, (0.3 * rng.normal(size=(6, 2)), 0.3 * rng.normal(size=(2, 6))))
    values = np.linalg.eigvalsh(np.cov(X.T, ddof=0))
    assert loss == pytest.approx(values[:4].sum(), abs=1e-7)
    assert subspace_angles(decoder, PCA(2).fit(X).components_.T).max() < 1e-5


def test_lda_is_pca_of_the_class_means_after_whitening_within() -> None:
    from sklearn.datasets import load_wine

    from groundstate import LinearDiscriminantAnalysis

    X, y = load_wine(return_X_y=True)
    means = np.array([X[y == c].mean(0) for c in range(3)])
    white = Whitener("cholesky").fit(X - means[y])
    J = np.asarray(white.whitening_)
    share = np.bincount(y) / len(y)
    centres = (means - share @ means) @ J.T
    axes = PCA(2, svd_solver="full").fit(centres, sample_weight=len(y) * share)
    ours = (axes.components_ @ J).T
    peer = np.asarray(LinearDiscriminantAnalysis(n_components=2).fit(X, y).scalings_)[:, :2]
    np.testing.assert_allclose(subspace_angles(ours, peer), 0, atol=1e-7)
    two = y < 2
    X, y = X[two], y[two]
    within = X - means[y]
    fisher = np.linalg.solve(within.T @ within, means[1] - means[0])
    w = np.asarray(LinearDiscriminantAnalysis(n_components=1).fit(X, y).scalings_)[:, 0]
    assert abs(w @ fisher) / np.linalg.norm(w) / np.linalg.norm(fisher) == pytest.approx(
        1, abs=1e-8
    )


def test_bad_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="n_components=5 must be between 0 and"):
        PCA(5).fit(IRIS)
    with pytest.raises(ValueError, match="minimum of 2"):
        PCA(1).fit(IRIS[:1])
    with pytest.raises(ValueError, match="weights sum to 1"):
        PCA(1).fit(IRIS, sample_weight=np.full(150, 1 / 150))
    with pytest.raises(ValueError, match="cannot be a string"):
        PCA("mle", svd_solver="randomized").fit(IRIS)
    with pytest.raises(ValueError, match="codes have 2 columns in this model, got 3"):
        PCA(2).fit(IRIS).inverse_transform(np.zeros((1, 3)))
    constant = PCA(1).fit(np.ones((5, 3)))
    assert (
        constant.explained_variance_ == [0.0]
        and np.isfinite(constant.transform(np.ones((2, 3)))).all()
    )
