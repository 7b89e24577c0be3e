"""Products of large Boltzmann machines are plain products."""

import pytest
import torch

from groundstate.compute.foreign.torch import affine


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_affine_is_the_product_and_the_shift(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    x, W = (torch.randn(s, generator=generator, dtype=dtype) for s in ((30, 70), (70, 20)))
    c = torch.randn(20, generator=generator, dtype=dtype)
    expected = x.double() @ W.double()
    tol = {"atol": 1e-4 if dtype == torch.float32 else 1e-12, "rtol": 0.0}
    torch.testing.assert_close(affine(x, W, c).double(), expected + c.double(), **tol)
    torch.testing.assert_close(affine(x, W).double(), expected, **tol)
    across = affine(x.T, x[:, :5].contiguous())  # neither side in rows
    torch.testing.assert_close(across.double(), x.T.double() @ x[:, :5].double(), **tol)
