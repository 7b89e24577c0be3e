"""What every contract may ask for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch


@pytest.fixture
def own_streams() -> Iterator[None]:
    """Fits and draws leave the process-wide streams of torch and NumPy as they found them."""
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # type: ignore[index]
    yield
    assert torch.equal(torch.get_rng_state(), before[0]), "a draw from torch's own stream"
    assert np.array_equal(np.random.get_state()[1], before[1]), "a draw from NumPy's own stream"  # type: ignore[index]
