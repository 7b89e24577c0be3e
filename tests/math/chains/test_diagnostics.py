"""Chain diagnostics equal arviz's; known answers on AR(1)."""

from __future__ import annotations

import importlib
import math
import warnings

import numpy as np
import pytest
import torch
from scipy.signal import lfilter
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.chains.diagnostics import autocorr, ess, mcse, rhat
from groundstate.math.stats.psis import pareto_k, smooth, weight_ess

with warnings.catch_warnings():  # arviz 0.23 warns about its own future when it is imported
    warnings.simplefilter("ignore")
    arviz = importlib.import_module("arviz")
arviz.Numba.disable_numba()  # its compiled path does not run with NumPy 2.4


def ar1(rho: float, n: int, chains: int, seed: int = 0) -> Tensor:
    g = torch.Generator().manual_seed(seed)
    noise = torch.randn(n, chains, generator=g, dtype=torch.float64)
    noise[1:] *= math.sqrt(1 - rho**2)
    return torch.from_numpy(lfilter([1.0], [1.0, -rho], noise.numpy(), axis=0))


CASES = {
    "independent": ar1(0.0, 400, 4),
    "sticky": ar1(0.95, 401, 3, seed=1),
    "negative": ar1(-0.6, 250, 2, seed=2),
    "one chain": ar1(0.5, 300, 1, seed=3),
    "shifted": ar1(0.5, 200, 4, seed=4) + torch.tensor([0.0, 0.0, 1.0, 3.0]),
    "heavy tail": torch.tan(1.5 * torch.erf(ar1(0.3, 300, 4, seed=5))),
    "ties": ar1(0.7, 200, 4, seed=6).round(),
    "short": ar1(0.2, 8, 2, seed=7),
}


@pytest.mark.parametrize("case", CASES)
def test_equals_arviz(case: str) -> None:
    x = CASES[case]
    peer = x.T.numpy()
    for kind in ("bulk", "tail", "mean"):
        expected = arviz.ess(peer, method=kind)
        assert float(ess(x, kind)) == pytest.approx(np.ravel(expected)[0], rel=1e-8)  # type: ignore[arg-type]
    for of in ("mean", "sd"):
        expected = arviz.mcse(peer, method=of)
        assert float(mcse(x, of)) == pytest.approx(np.ravel(expected)[0], rel=1e-8)  # type: ignore[arg-type]
    if x.shape[1] > 1:
        assert float(rhat(x)) == pytest.approx(float(arviz.rhat(peer)), rel=1e-8)
    torch.testing.assert_close(
        autocorr(x), torch.from_numpy(np.array(arviz.autocorr(peer))).T, atol=1e-8, rtol=0
    )


def test_events_are_independent_columns() -> None:
    x = torch.stack([CASES["independent"], CASES["independent"].exp()], -1).reshape(400, 4, 2, 1)
    for f in (ess, rhat, mcse):
        both = f(x)
        assert both.shape == (2, 1)
        assert float(both[0, 0]) == pytest.approx(float(f(x[..., 0, 0])))
    assert float(ess(x)[0, 0]) == pytest.approx(float(ess(x)[1, 0]))  # ranks: no units


def test_ar1_effective_size() -> None:
    n = 200_000
    share = float(ess(ar1(0.5, n, 1, seed=8), "mean")) / n
    assert share == pytest.approx(1 / 3, rel=0.05)


def test_no_answer_is_nan() -> None:
    x = ar1(0.0, 100, 2)
    x[3, 1] = math.nan
    assert math.isnan(float(ess(x))) and math.isnan(float(rhat(x)))
    assert math.isnan(float(rhat(ar1(0.0, 100, 1))))
    assert math.isnan(float(ess(ar1(0.0, 3, 2))))
    assert float(ess(torch.ones(100, 2))) == 200.0
    with pytest.raises(ShapeError, match=r"draws must be \(n, C, ...\)"):
        ess(torch.zeros(5))


@pytest.mark.parametrize("width", [0.5, 1.0, 3.0])
def test_smoothing_equals_arviz(width: float) -> None:
    g = torch.Generator().manual_seed(0)
    lw = width * torch.randn(1000, 3, generator=g, dtype=torch.float64)
    mine, k = smooth(lw)
    for j in range(3):
        theirs, peer_k = arviz.psislw(lw[:, j].numpy().copy())
        assert float(k[j]) == pytest.approx(float(peer_k), abs=1e-8)
        np.testing.assert_allclose(mine[:, j].numpy(), np.asarray(theirs), atol=1e-8)
    torch.testing.assert_close(mine.logsumexp(0), torch.zeros(3).double())


def test_weights() -> None:
    lw = torch.zeros(50, dtype=torch.float64)
    assert float(weight_ess(lw)) == pytest.approx(50)
    assert float(pareto_k(lw)) == -math.inf
    lw[0] = 1000.0
    assert float(weight_ess(lw)) == pytest.approx(1)
    assert float(pareto_k(lw)) > 0.7
