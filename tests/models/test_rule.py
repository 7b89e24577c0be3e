"""``rule_``: what a learning rule keeps for itself is saved, loaded and gone on with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import groundstate as gs
from groundstate.learn import PersistentCD

RNG = np.random.default_rng(0)
BITS = (RNG.random((40, 5)) > 0.5).astype(np.float64)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
SOME = np.where(np.arange(60) < 30, Y, -1)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def rbm(model: Any) -> Any:
    return model.partial_fit(BITS)


def pseudo(model: Any) -> Any:
    return model.partial_fit(X, SOME, classes=[0, 1])


def chained(model: Any) -> Any:
    return model.partial_fit(X, Y, classes=[0, 1])


CASES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "BernoulliRBM": (lambda: gs.BernoulliRBM(4, batch_size=7, random_state=0), rbm),
    "PseudoLabelClassifier": (
        lambda: gs.PseudoLabelClassifier(
            2.0, 1, 3, hidden_layer_sizes=(4,), batch_size=16, random_state=0
        ),
        pseudo,
    ),
    "NeuralClassifier": (
        lambda: gs.NeuralClassifier(
            network(), loss=PersistentCD(n_chains=8, over="y"), batch_size=16, random_state=0
        ),
        chained,
    ),
}


def state(model: Any) -> dict[str, Any]:
    return {
        **model.energy_.state_dict(),
        **{f"rule.{k}": v for k, v in model.rule_.state_dict().items()},
    }


@pytest.mark.parametrize("name", CASES)
def test_a_loaded_model_goes_on_where_it_stopped(name: str, tmp_path: Path) -> None:
    make, step = CASES[name]
    whole, parts = make(), make()
    for _ in range(6):
        step(whole)
    for i in range(6):
        step(parts)
        if i == 2:
            parts = gs.load(parts.save(tmp_path / "half"))
    expected, found = state(whole), state(parts)
    assert expected.keys() == found.keys()
    for key, value in expected.items():
        np.testing.assert_array_equal(np.asarray(value), np.asarray(found[key]), err_msg=key)


def test_the_share_of_pseudo_labels_goes_on_growing() -> None:
    make, step = CASES["PseudoLabelClassifier"]
    model = make()
    for epoch in range(1, 5):
        step(model)
        assert model.rule_.t == epoch
    model.fit(X, SOME)  # begins anew
    assert model.rule_.t == model.n_iter_


def test_a_rule_that_was_passed_is_not_changed() -> None:
    rule = PersistentCD(n_chains=8, over="y")
    model = gs.NeuralClassifier(network(), loss=rule, max_iter=2, n_iter_no_change=float("inf"))
    model.fit(X, Y)
    assert model.rule_ is not rule and not rule.source.chains
    assert model.rule_.source.chains["y"].shape == (8,)


def test_rules_without_a_state_are_not_kept() -> None:
    model = gs.BernoulliRBM(4, n_chains=7, n_iter=2, random_state=0).fit(BITS)
    assert model.rule_.source.chains["z"].shape == model.h_samples_.shape == (7, 4)
    assert not hasattr(gs.Ridge().fit(X, Y), "rule_")
    assert not hasattr(
        gs.MLPClassifier((3,), max_iter=2, n_iter_no_change=np.inf).fit(X, Y), "rule_"
    )
