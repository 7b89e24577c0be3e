"""Linear autoregressions: roots, responses and covariances against statsmodels and each other."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from statsmodels.tsa.arima_process import ArmaProcess

from groundstate.errors import ShapeError
from groundstate.math.chains.autoregression import ar_covariance, ar_response, ar_roots

CASES = [[0.8], [0.5, 0.3], [0.4, -0.3, 0.2], [1.2, -0.5, 0.1, 0.05, -0.02]]


@pytest.mark.parametrize("theta", CASES)
def test_agree_with_statsmodels(theta: list[float]) -> None:
    peer = ArmaProcess.from_coeffs(theta)
    np.testing.assert_allclose(ar_response(theta, 9), peer.arma2ma(9), atol=1e-12)
    # statsmodels sums the infinite moving average; ours solves p + 1 equations
    np.testing.assert_allclose(ar_covariance(theta, lags=8), peer.acovf(9), rtol=1e-9)
    ours, theirs = ar_roots(theta), peer.arroots
    np.testing.assert_allclose(np.sort_complex(ours), np.sort_complex(theirs), rtol=1e-10)


def test_the_variance_of_a_first_order_process() -> None:
    assert float(ar_covariance([0.8])[0]) == pytest.approx(2.777778, abs=1e-6)
    assert float(ar_covariance([0.8], 4.0)[0]) == pytest.approx(4 * 2.777778, abs=1e-5)


@pytest.mark.parametrize("theta", CASES)
def test_the_variance_is_the_sum_of_squared_responses(theta: list[float]) -> None:
    psi = ar_response(theta, 2000)
    assert float(ar_covariance(theta)[0]) == pytest.approx(float((psi**2).sum()), rel=1e-9)


def test_gradients() -> None:
    theta = torch.tensor([0.4, -0.3, 0.2], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: ar_covariance(t, lags=5), theta)
    assert torch.autograd.gradcheck(lambda t: ar_response(t, 6), theta)


def test_arrays_and_what_is_refused() -> None:
    assert isinstance(ar_roots([0.8]), np.ndarray)
    assert isinstance(ar_roots(torch.tensor([0.8])), torch.Tensor)
    assert ar_covariance(np.float32([0.8])).dtype == np.float32
    assert len(ar_roots([0.8, 0.0])) == 1
    with pytest.raises(ValueError, match="not stationary"):
        ar_covariance([1.0])
    with pytest.raises(ValueError, match="theta"):
        ar_response([np.nan], 3)
    with pytest.raises(ShapeError, match=r"\(p,\)"):
        ar_roots([[0.8]])
    with pytest.raises(ValueError, match="n must be"):
        ar_response([0.8], 0)
