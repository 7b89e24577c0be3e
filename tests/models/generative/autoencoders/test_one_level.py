"""A column of one level is a column: it comes back, and says nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from groundstate import VAE, ConditionalVAE, HierarchicalVAE


@pytest.mark.filterwarnings("ignore:the importance weights")  # trained for a moment
@pytest.mark.parametrize("make", [VAE, ConditionalVAE, HierarchicalVAE])
def test_a_column_of_one_level(make: Any) -> None:
    size = np.random.default_rng(0).normal(size=40).astype("float32")
    table = pd.DataFrame({"kind": ["a"] * 40, "size": size})
    sizes = (2, 1) if make is HierarchicalVAE else 1
    settings = {"hidden_layer_sizes": (4,), "max_iter": 3, "random_state": 0, "device": None}
    model = make(sizes, **settings).fit(table)
    assert set(model.sample(30, random_state=0)["kind"]) == {"a"}
    assert np.isfinite(model.score_samples(table)).all()
    gaps = table.head(3).assign(kind=None)
    assert model.impute(gaps, "sample", random_state=0)["kind"].tolist() == ["a"] * 3
    flat = model.reconstruct(table.head(3))
    assert list(flat["kind"]) == ["a"] * 3
