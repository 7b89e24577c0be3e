"""Everything registered can be stored: a new row is tested by being there."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris
from tests.contracts.test_estimator import QUICK
from torch.distributions import Normal

from groundstate.energy import CentroidEnergy, DensityEnergy, Energy, LinearEnergy, TableEnergy
from groundstate.energy.registering import example_rows
from groundstate.errors import StoreError
from groundstate.registry import energies, models
from groundstate.store import dumps, loads

COMPOSED = {
    "sum": lambda: LinearEnergy(2, 3, scale=1.0) + TableEnergy(torch.tensor([0.0, 1.0, 2.0]), "y"),
    "scaled": lambda: 2.0 * LinearEnergy(2, 3, scale=1.0),
    "given": lambda: LinearEnergy(2, 3, scale=1.0).given(x=torch.ones(1, 2)),
    "marginal": lambda: CentroidEnergy(3, 2).marginal("z"),
    "normal": lambda: DensityEnergy(Normal(torch.zeros(2), torch.ones(2)), "x"),
}


@pytest.mark.parametrize("name", [*energies.names(), *COMPOSED])
def test_an_energy_comes_back_the_same(name: str) -> None:
    make = COMPOSED[name] if name in COMPOSED else energies[name].make
    assert make is not None
    energy: Energy = make()
    batch = example_rows(energy, 5, torch.Generator().manual_seed(0))
    data = dumps(energy)
    back = loads(data)
    assert type(back) is type(energy) and back.spaces == energy.spaces
    with torch.no_grad():
        assert torch.equal(back(**batch), energy(**batch))
    assert dumps(back) == data


# pictures from pictures are stored in the contract of generators
TABLES = [row.name for row in models if row.rows == "table"]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.filterwarnings("ignore::UserWarning")  # defaults may stop early; not the point here
def test_a_model_answers_the_same(name: str) -> None:
    X, y = load_iris(return_X_y=True)
    model = models[name].obj(**QUICK[name]).fit(X, y + 1)  # some want targets above zero
    data = dumps(model)
    back = loads(data)
    for method in ("predict", "predict_proba", "decision_function", "transform", "score_samples"):
        if hasattr(model, method):
            assert np.array_equal(getattr(back, method)(X), getattr(model, method)(X))
    assert back.get_params() == model.get_params() and dumps(back) == data


def test_an_energy_that_cannot_be_stored_says_where() -> None:
    class Own(Energy):
        def __init__(self) -> None:
            super().__init__()

    with pytest.raises(StoreError, match=r"cannot store value\.inner\.energy: .*Own"):
        dumps({"inner": 2.0 * Own()})
