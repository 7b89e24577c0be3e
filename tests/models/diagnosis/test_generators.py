"""Idle codes, chains that ran away and noise levels too far apart are named with their numbers."""

from __future__ import annotations

import warnings

import numpy as np
import torch

from groundstate import VAE, EnergyModel, ScoreModel
from groundstate.models.diagnosis import diagnose
from groundstate.models.diagnosis.generators import _overlap

ROWS = np.random.default_rng(0).normal(size=(200, 2)).astype("float32")


def named(model: object, name: str, rows: np.ndarray = ROWS) -> object:
    return next((f for f in diagnose(model, rows).findings if f.name == name), None)


def test_codes_that_say_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit warns, too
        idle = VAE(
            4,
            hidden_layer_sizes=(8,),
            beta=1000.0,
            learning_rate_init=0.02,
            max_iter=60,
            random_state=0,
        ).fit(ROWS)
    found = named(idle, "posterior collapse")
    assert found is not None and found.number == 1.0 and "beta" in found.advice
    idle.active_units_[:] = True
    assert named(idle, "posterior collapse") is None


def test_chains_that_ran_away() -> None:
    model = EnergyModel(hidden_layer_sizes=(8,), n_chains=16, k=2, max_iter=1, random_state=0).fit(
        ROWS
    )
    assert named(model, "diverging chains") is None
    with torch.no_grad():
        model.rule_.source.chains["x"].mul_(1e4)
    found = named(model, "diverging chains")
    assert found is not None and found.number > 10 and "learning rate" in found.advice


def test_noise_levels_too_far_apart() -> None:
    rows = np.random.default_rng(1).normal(size=(100, 64)).astype("float32")
    few = ScoreModel(hidden_layer_sizes=(8,), n_levels=4, max_iter=1, random_state=0).fit(rows)
    found = named(few, "too few noise levels", rows)
    assert found is not None and found.number < 0.5
    enough = int(found.advice.split("n_levels=")[1].split(",")[0])
    more = ScoreModel(hidden_layer_sizes=(8,), n_levels=enough, max_iter=1, random_state=0).fit(
        rows
    )
    assert named(more, "too few noise levels", rows) is None and enough > 4
    # two shells of one radius share all but the tails beyond three spreads
    assert abs(_overlap(1.0, 784) - 0.9973) < 1e-4
