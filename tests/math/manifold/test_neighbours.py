"""Affinities, divergence, forces and quality of maps; numbers of the specification."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, make_swiss_roll
from sklearn.manifold import trustworthiness as peer_trustworthiness

from groundstate import manifold
from groundstate.math.manifold.affinities import conditional, joint, powered
from groundstate.math.manifold.divergence import PairEnergy
from groundstate.math.manifold.forces import DeviceForces, HostForces

LINE = np.array([[0.0], [1.0], [3.0]])
DIGITS = load_digits().data


def csr(rows: torch.Tensor, perplexity: float) -> tuple[Any, Any, Any, Any]:
    i, j, p, _ = joint(rows, perplexity)
    starts = torch.zeros(len(rows) + 1, dtype=torch.int64)
    starts[1:] = torch.bincount(i, minlength=len(rows)).cumsum(0)
    dense = torch.zeros(len(rows), len(rows), dtype=p.dtype)
    dense[i, j] = p
    return starts, j, p, dense


def perplexity(p: np.ndarray) -> np.ndarray:
    return np.exp(-(p * np.log(p)).sum(1))


def test_affinities_of_three_rows() -> None:
    away = [[1.0, 3.0], [1.0, 2.0], [3.0, 2.0]]
    p, _ = conditional(away, sigma=1.0)
    expected = [[0.982014, 0.017986], [0.817574, 0.182426], [0.075858, 0.924142]]
    np.testing.assert_allclose(p, expected, atol=1e-6)
    np.testing.assert_allclose(perplexity(p), [1.094278, 1.608097, 1.308047], atol=1e-6)
    pairs = [(p[0, 0] + p[1, 0]) / 6, (p[0, 1] + p[2, 0]) / 6, (p[1, 1] + p[2, 1]) / 6]
    np.testing.assert_allclose(pairs, [0.299931, 0.015641, 0.184428], atol=1e-6)
    P, sigma = manifold.affinities(LINE, 1.5, return_sigma=True)
    np.testing.assert_allclose(sigma, [1.485360, 0.909593, 1.174280], atol=1e-6)
    assert np.isclose(P.sum(), 1) and (np.diag(P) == 0).all() and np.allclose(P, P.T)


def test_every_row_has_its_perplexity() -> None:
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(300, 5)) * 100)
    distance = torch.cdist(rows, rows)[:, :].topk(91, largest=False).values[:, 1:]
    p, _ = conditional(distance, 30.0)
    np.testing.assert_allclose(perplexity(p.numpy()), 30, atol=1e-5)
    sparse = manifold.affinities(rows.numpy(), 30.0, sparse=True)
    assert np.isclose(sparse.sum(), 1) and abs(sparse - sparse.T).max() < 1e-15
    tensor = manifold.affinities(rows, 30.0, sparse=True)
    np.testing.assert_allclose(tensor.to_dense().numpy(), sparse.toarray(), atol=1e-15)
    with pytest.raises(ValueError, match="perplexity must be less than n_samples=300"):
        manifold.affinities(rows, 300)


def test_equal_rows_share_the_probability() -> None:
    p, _ = conditional(np.ones((2, 9)), 3.0)
    np.testing.assert_allclose(p, 1 / 9)
    near = np.r_[np.zeros(6), np.ones(4)][None]
    np.testing.assert_allclose(conditional(near, 3.0)[0][0, :6], 1 / 6, atol=1e-6)


def test_affinities_have_the_gradient_of_their_solution() -> None:
    x = torch.rand(4, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: conditional(x, 3.0)[0], (x,))


def test_divergence_of_three_rows() -> None:
    p, _ = conditional([[1.0, 3.0], [1.0, 2.0], [3.0, 2.0]], sigma=1.0)
    P = np.zeros((3, 3))
    P[[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]] = p.ravel()
    P = (P + P.T) / 6
    q = manifold.map_similarities(LINE)
    np.testing.assert_allclose(q[[0, 0, 1], [1, 2, 2]], [0.3125, 0.0625, 0.125])
    assert np.isclose(manifold.kl_divergence(P, LINE), 0.0755059, atol=1e-7)
    gradient = manifold.kl_gradient(P, LINE)
    np.testing.assert_allclose(gradient[:, 0], [0.081368, -0.120222, 0.038854], atol=1e-6)
    assert abs(gradient.sum()) < 1e-12


@pytest.mark.parametrize(("kernel", "dof"), [("t", 1.0), ("t", 2.5), ("gaussian", 1.0)])
def test_gradient_is_that_of_the_divergence(kernel: str, dof: float) -> None:
    rng = np.random.default_rng(0)
    P = rng.random((8, 8))
    P = np.triu(P, 1) + np.triu(P, 1).T
    P, Y = torch.from_numpy(P / P.sum()), torch.from_numpy(rng.normal(size=(8, 2))).requires_grad_()
    value = manifold.kl_divergence(P, Y, kernel=kernel, dof=dof)
    (auto,) = torch.autograd.grad(value, Y)
    torch.testing.assert_close(manifold.kl_gradient(P, Y.detach(), kernel=kernel, dof=dof), auto)
    assert torch.autograd.gradcheck(
        lambda Y: manifold.kl_divergence(P, Y, kernel=kernel, dof=dof), (Y,)
    )


@pytest.mark.parametrize("scale", [1e-4, 1.0, 10.0])
def test_forces_are_the_gradient(scale: float) -> None:
    starts, ends, p, dense = csr(torch.from_numpy(DIGITS[:600]), 10.0)
    for dim in (1, 2, 3):
        Y = np.random.default_rng(0).normal(size=(600, dim)) * scale
        truth, kl = manifold.kl_gradient(dense.numpy(), Y), manifold.kl_divergence(dense.numpy(), Y)
        size = np.abs(truth).max()
        for method, tol in (("exact", 1e-10), ("barnes_hut", 0.05), ("fft", 0.02)):
            if method == "fft" and dim != 2:
                continue
            forces = HostForces(starts, ends, p, method)
            gradient, z = forces(np.ascontiguousarray(Y.T))
            assert np.abs(gradient - truth).max() < tol * size
            assert abs(forces.divergence(np.ascontiguousarray(Y.T), z) - kl) < 0.02 * kl
        for method, tol in (("exact", 1e-10), ("fft", 0.02)):
            if method == "fft" and dim == 3:
                continue
            device = DeviceForces(starts, ends, p, method, PairEnergy(), torch.float64)
            found, total = device(torch.from_numpy(Y))
            assert np.abs(found.numpy() - truth).max() < tol * size
            assert abs(device.divergence(torch.from_numpy(Y), total) - kl) < 0.02 * kl


@pytest.mark.parametrize("pair", [PairEnergy("gaussian"), PairEnergy("t", 2.0)])
def test_forces_of_other_kernels(pair: PairEnergy) -> None:
    starts, ends, p, dense = csr(torch.from_numpy(DIGITS[:300]), 10.0)
    Y = torch.from_numpy(np.random.default_rng(0).normal(size=(300, 2)) * 3)
    truth = manifold.kl_gradient(dense, Y, kernel=pair.kernel, dof=pair.dof)
    for method, tol in (("exact", 1e-10), ("fft", 1e-3)):
        found = DeviceForces(starts, ends, p, method, pair, torch.float64)(Y)[0]
        assert float((found - truth).abs().max()) < tol * float(truth.abs().max())


def test_pushes_of_a_grown_map() -> None:
    """The error of the pushes as a whole: at most 5 % of the tree's, 1 % of the grid's."""
    n = 3000
    rng = np.random.default_rng(0)
    centre = rng.normal(size=(10, 2)) * 25
    Y = np.ascontiguousarray((centre[rng.integers(10, size=n)] + 4 * rng.normal(size=(n, 2))).T)
    none = torch.zeros(n + 1, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), torch.zeros(0)
    truth, total = HostForces(*none, "exact").push(Y)
    for method, tol in (("barnes_hut", 0.05), ("fft", 0.01)):
        push, z = HostForces(*none, method).push(Y)
        assert np.linalg.norm(push - truth) < tol * np.linalg.norm(truth)
        assert abs(z / total - 1) < 0.01


def test_threads_do_not_change_a_bit() -> None:
    starts, ends, p, _ = csr(torch.from_numpy(DIGITS[:700]), 10.0)
    Y = np.random.default_rng(0).normal(size=(2, 700)) * 5
    kept = torch.get_num_threads()
    try:
        for method in ("exact", "barnes_hut", "fft"):
            found = []
            for threads in (1, 3):
                torch.set_num_threads(threads)
                found.append(HostForces(starts, ends, p, method)(Y))
            np.testing.assert_array_equal(found[0][0], found[1][0])
            assert found[0][1] == found[1][1]
    finally:
        torch.set_num_threads(kept)


def test_powers_of_distances() -> None:
    away = torch.rand(20, 30, dtype=torch.float64).sort(1).values + 1
    assert powered(away, 1.0, 2) is away
    cloud = torch.from_numpy(np.random.default_rng(0).normal(size=(500, 100)))
    near = torch.cdist(cloud, cloud).sort(1).values[:, 1:91]
    changed = powered(near, "intrinsic", 2)

    def contrast(d: torch.Tensor) -> float:
        return float(((d[:, -1] - d[:, 0]) / d[:, 0]).mean())

    assert contrast(changed) > 2 * contrast(near)
    with pytest.raises(ValueError, match="intrinsic"):
        powered(away, "linear", 2)


def test_intrinsic_dimension() -> None:
    roll, _ = make_swiss_roll(1000, random_state=0)
    assert np.isclose(manifold.intrinsic_dimension(roll, "twonn"), 2.00, atol=0.01)
    assert np.isclose(manifold.intrinsic_dimension(roll), 1.89, atol=0.01)
    for d, expected in ((2, 1.98), (5, 4.74), (10, 8.20), (20, 15.55)):
        cube = np.random.default_rng(0).random((2000, d))
        assert np.isclose(manifold.intrinsic_dimension(cube, "twonn"), expected, atol=0.02)
    local = manifold.intrinsic_dimension(roll, local=True)
    assert local.shape == (1000,) and 1.5 < np.median(local) < 2.5
    twice = manifold.intrinsic_dimension(np.repeat(roll, 2, 0), "twonn")
    assert np.isclose(twice, manifold.intrinsic_dimension(roll, "twonn"))
    with pytest.raises(ValueError, match="k must be"):
        manifold.intrinsic_dimension(roll[:5])
    with pytest.raises(ValueError, match="local"):
        manifold.intrinsic_dimension(roll, "twonn", local=True)


def test_quality_of_maps() -> None:
    X = DIGITS[:250]
    Y = np.random.default_rng(0).normal(size=(250, 2))
    assert manifold.trustworthiness(X, X) == 1 and manifold.continuity(X, X) == 1
    assert manifold.trustworthiness(csr_array(X), Y) == manifold.trustworthiness(X, Y)
    assert manifold.neighbor_recall(X, X) == 1
    assert manifold.residual_variance(X, X) < 1e-12 and manifold.stress1(X, X) < 1e-7
    for k in (3, 10):
        ours, peer = manifold.trustworthiness(X, Y, k), peer_trustworthiness(X, Y, n_neighbors=k)
        assert np.isclose(ours, peer, atol=2e-3)  # of equal distances another comes first
    assert manifold.continuity(X, Y) == manifold.trustworthiness(Y, X)
    assert manifold.neighbor_recall(X, Y) < 0.2
    scaled = manifold.residual_variance(X, 3 * X)
    assert scaled < 1e-12 and np.isclose(manifold.stress1(X, 2 * X), 0.5)
    upper = np.triu_indices(250, 1)
    a = np.linalg.norm(X[:, None] - X, axis=-1)[upper]
    b = np.linalg.norm(Y[:, None] - Y, axis=-1)[upper]
    assert np.isclose(manifold.residual_variance(X, Y), 1 - np.corrcoef(a, b)[0, 1] ** 2)
    assert np.isclose(manifold.stress1(X, Y), np.sqrt(((a - b) ** 2).sum() / (b**2).sum()))
    order = np.random.default_rng(1).permutation(250)
    assert np.isclose(
        manifold.trustworthiness(X[order], Y[order]), manifold.trustworthiness(X, Y), atol=1e-3
    )
    with pytest.raises(ValueError, match="less than n / 2"):
        manifold.trustworthiness(X, Y, 125)
    with pytest.raises(ValueError, match="same rows"):
        manifold.stress1(X, Y[:10])


def test_tiles_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    from groundstate.math.manifold import quality

    X, Y = DIGITS[:200], np.random.default_rng(0).normal(size=(200, 2))
    whole = manifold.trustworthiness(X, Y), manifold.stress1(X, Y)
    monkeypatch.setattr(quality, "CELLS", 1000)
    assert manifold.trustworthiness(X, Y) == whole[0]
    assert np.isclose(manifold.stress1(X, Y), whole[1])
