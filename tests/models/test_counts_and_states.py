"""What is asked of a model: whole numbers of draws, after fit, of rows of its kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import groundstate
from groundstate.errors import DataError, Unsupported

X = np.random.default_rng(0).normal(size=(30, 2))
label = np.arange(30) % 2
TEXTS = ["good fun film", "a dull film"] * 15


@pytest.mark.parametrize("name", ["KernelDensity", "GaussianMixture", "GaussianNB", "PCA"])
def test_how_many_draws(name: str) -> None:
    model = getattr(groundstate, name)()
    model.fit(X, label)
    if not hasattr(model, "sample"):
        model = groundstate.ProbabilisticPCA(1).fit(X)
    with pytest.raises(ValueError, match=r"n_samples must be a whole number, got 1\.5"):
        model.sample(1.5)
    with pytest.raises(ValueError, match="-1"):
        model.sample(-1)
    with pytest.raises(ValueError, match="n_samples"):
        model.sample(0)


@pytest.mark.parametrize("name", ["VAE", "Autoencoder", "NormalizingFlow", "BernoulliRBM", "DDPM"])
def test_before_fit(name: str) -> None:
    for question in ("inverse_transform", "score_samples", "transform"):
        ask = getattr(getattr(groundstate, name)(), question, None)
        if ask is not None:
            with pytest.raises(NotFittedError):
                ask(X)
    with pytest.raises(NotFittedError):
        getattr(groundstate, name)().sample(2)


@pytest.mark.parametrize("column", [pd.DataFrame({"text": TEXTS}), np.array(TEXTS)[:, None]])
def test_texts_are_one_column(column: Any) -> None:
    """It was "got no rows to learn from"."""
    with pytest.raises(DataError, match=r"texts are one column of strings, got 2 axes"):
        groundstate.BagOfTokensClassifier().fit(column, label)


def test_pictures_have_more_than_two_axes() -> None:
    with pytest.raises(DataError, match=r"got shape \(30, 2\), expected an array \(n, channels"):
        groundstate.LinearImageClassifier().fit(X, label)
    with pytest.raises(DataError, match="got NoneType, expected an array"):
        groundstate.LinearImageClassifier().fit(None, label)


def test_targets_of_sequences() -> None:
    """It was "the loss became nan ...; lower lr"."""
    rows = [np.ones((3, 2)) * i for i in range(8)]
    target = np.arange(8.0)
    target[5] = np.nan
    with pytest.raises(DataError, match="Input y contains NaN in 1 of 8 entries, first in row 5"):
        groundstate.SequenceRegressor().fit(rows, target)
    with pytest.raises(DataError, match="Input y contains None in 1 of 8 entries, first in row 0"):
        groundstate.MeanPoolSequenceClassifier().fit(rows, np.array([None, *"abababa"], object))


def test_texts_have_no_open_cells() -> None:
    model = groundstate.BagOfTokensClassifier(max_iter=1).fit(TEXTS, label)
    with pytest.raises(Unsupported, match="only arrays of numbers have cells that can be open"):
        model.infer({"x": TEXTS}, "x")


def test_a_prompt_is_one_string() -> None:
    model = groundstate.LanguageModel(
        max_epochs=1, layers=1, dim=16, heads=2, context=8, random_state=0, val_fraction=0
    ).fit(TEXTS)
    with pytest.raises(DataError, match="prompt is one string to write on from, got None"):
        model.generate(None)
    with pytest.raises(ValueError, match="n must be at least 1, got -1"):
        model.sample(-1)
