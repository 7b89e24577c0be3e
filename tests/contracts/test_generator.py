"""What every generator promises: the same questions through the same calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests.processes import elsewhere

import groundstate
from groundstate.errors import DataError, Unsupported
from groundstate.models.generative.base import GenerativeEstimator
from groundstate.registry import models

# models that were trained for a moment
pytestmark = pytest.mark.filterwarnings("ignore:the importance weights")

N = 80
KINDS = ("exact", "bound", "estimate", "unnormalised", "none")


def numbers() -> np.ndarray:
    """Real rows of three correlated columns."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(N, 1))
    return np.concatenate([z + 0.3 * rng.normal(size=(N, 1)) for _ in range(3)], 1)


def bits() -> np.ndarray:
    return (np.random.default_rng(1).random((N, 4)) < [0.2, 0.5, 0.7, 0.9]).astype(float)


def pictures() -> np.ndarray:
    """Whole numbers of pixels, ``(n, 1, 4, 4)``."""
    return np.random.default_rng(2).integers(0, 4, (N, 1, 4, 4)).astype(float)


def mixed() -> pd.DataFrame:
    """A table with a column of categories."""
    rng = np.random.default_rng(3)
    kind = rng.choice(["a", "b", "c"], N, p=[0.2, 0.5, 0.3])
    return pd.DataFrame({"kind": kind, "size": (kind == "a") * 3.0 + rng.normal(size=N)})


@dataclass
class Case:
    """A quick generator and rows it takes; ``not_for`` names questions it has no answer to."""

    model: Any
    rows: Callable[[], Any] = numbers
    not_for: tuple[str, ...] = ()  # of "y", "mixed", "impute", "temperature"
    kind: str | None = None  # of its density
    given: Callable[[], Any] = lambda: None  # y, where it must have one
    total: bool = False  # `score` is the sum over the rows, as scikit-learn's of that name

    def fit(self, y: Any = None, X: Any = None) -> Any:
        rows = self.rows() if X is None else X
        return clone(self.model).fit(rows, self.given() if y is None else y)


_SMALL: dict[str, Any] = {
    "hidden_layer_sizes": (16,), "max_iter": 40, "learning_rate_init": 1e-2, "random_state": 0,
    "device": None,
}  # fmt: skip


def labels() -> np.ndarray:
    return np.repeat(["odd", "even"], N // 2)


GAME = {"n_components": 4, "hidden_layer_sizes": (8,), "max_iter": 2, "random_state": 0}

# a row for every registered generator
CASES: dict[str, Case] = {
    "EnergyModel": Case(
        groundstate.EnergyModel(
            method="nce", hidden_layer_sizes=(8,), max_iter=3, burn_in=20, random_state=0
        ),
        kind="estimate",
    ),
    "ScoreModel": Case(
        groundstate.ScoreModel(hidden_layer_sizes=(8,), max_iter=3, n_steps=5, random_state=0),
        kind="unnormalised",
    ),
    "ScoreSDE": Case(
        groundstate.ScoreSDE(
            hidden_layer_sizes=(8,), max_iter=3, n_steps=10, ode_steps=20, random_state=0
        ),
        kind="exact",
    ),
    "CNF": Case(
        groundstate.CNF(
            hidden_layer_sizes=(8,), method="rk4", n_steps=4, max_iter=3, random_state=0
        ),
        kind="exact",
    ),
    "FlowMatching": Case(
        groundstate.FlowMatching(
            hidden_layer_sizes=(8,), n_steps=5, rtol=1e-3, atol=1e-3, max_iter=5, random_state=0
        ),
        kind="exact",
    ),
    "MADE": Case(
        groundstate.MADE(2, hidden_layer_sizes=(8,), max_iter=5, random_state=0), kind="exact"
    ),
    "NormalizingFlow": Case(
        groundstate.NormalizingFlow(
            n_transforms=2, hidden_layer_sizes=(8,), max_iter=4, random_state=0
        ),
        kind="exact",
    ),
    "BernoulliRBM": Case(
        groundstate.BernoulliRBM(4, visible="gaussian", n_iter=3, burn_in=20, random_state=0)
    ),
    "DiscreteBayesianNetwork": Case(groundstate.DiscreteBayesianNetwork(n_bins=4), kind="exact"),
    "LinearGaussianBayesianNetwork": Case(
        groundstate.LinearGaussianBayesianNetwork(), kind="exact"
    ),
    "KernelDensity": Case(groundstate.KernelDensity("likelihood"), kind="exact", total=True),
    "MarkovRandomField": Case(groundstate.MarkovRandomField(n_bins=3), kind="exact"),
    "TableMixture": Case(groundstate.TableMixture(random_state=0), kind="exact"),
    "SumProductNetwork": Case(
        groundstate.SumProductNetwork(max_iter=10, random_state=0), kind="exact"
    ),
    "AutoregressiveDensity": Case(
        groundstate.AutoregressiveDensity(hidden_layer_sizes=(16,), max_iter=5, random_state=0),
        kind="exact",
    ),
    "PixelCNN": Case(
        groundstate.PixelCNN(features=4, n_layers=1, max_iter=2, random_state=0),
        pictures,
        not_for=("mixed",),
        kind="exact",
    ),
    "DDPM": Case(
        groundstate.DDPM(10, "cosine", hidden_layer_sizes=(8,), max_iter=3, random_state=0),
        kind="bound",
    ),
    "ConditionalVAE": Case(groundstate.ConditionalVAE(**_SMALL)),
    "VAE": Case(groundstate.VAE(**_SMALL), kind="estimate"),
    "HierarchicalVAE": Case(groundstate.HierarchicalVAE((2, 1), **_SMALL), kind="estimate"),
    "ConditionalGAN": Case(groundstate.ConditionalGAN(**GAME), kind="none", given=labels),
    "EnergyGAN": Case(groundstate.EnergyGAN(**GAME), kind="unnormalised"),
    "GAN": Case(groundstate.GAN(**GAME), kind="none"),
    "TranslationGAN": Case(
        groundstate.TranslationGAN(2, base=4, depth=1, d_base=4, d_depth=1, max_iter=1, random_state=0),
        pictures, ("y", "mixed"), "none", pictures,
    ),
    "WGAN": Case(groundstate.WGAN(**GAME, n_critic=2), kind="none"),
    "Autoencoder": Case(groundstate.Autoencoder(1, (6,), max_iter=8, random_state=0), kind="none"),
    "ContractiveAutoencoder": Case(
        groundstate.ContractiveAutoencoder(3, max_iter=8, random_state=0), pictures
    ),
    "DenoisingAutoencoder": Case(
        groundstate.DenoisingAutoencoder(3, (6,), max_iter=8, random_state=0), pictures
    ),
    "VQAutoencoder": Case(
        groundstate.VQAutoencoder(4, 16, hidden_layer_sizes=(6,), max_iter=8, random_state=0),
        kind="none",
    ),
    "SparseAutoencoder": Case(groundstate.SparseAutoencoder(4, max_iter=8, random_state=0)),
}  # fmt: skip

# made of two fitted stages, and so in no list of models; the same questions all the same
COMPOSED = {
    "LatentDiffusion": Case(
        groundstate.LatentDiffusion(
            groundstate.VAE(2, hidden_layer_sizes=(8,), max_iter=8, random_state=0),
            groundstate.DDPM(10, "cosine", hidden_layer_sizes=(8,), max_iter=3, random_state=0),
        ),
        kind="none",
    ),
}
ALL = CASES | COMPOSED

GENERATORS = [info.name for info in models if info.role == "generator"]


def asked(question: str | None = None) -> Any:
    """Over the generators that have an answer to a question."""
    names = [name for name, case in sorted(ALL.items()) if question not in case.not_for]
    return pytest.mark.parametrize("name", names)


def test_every_generator_has_a_case() -> None:
    assert sorted(CASES) == sorted(GENERATORS)


@pytest.mark.usefixtures("own_streams")
@asked()
def test_draws_are_rows_and_the_seed_decides(name: str) -> None:
    case = ALL[name]
    X, model = case.rows(), case.fit()
    assert isinstance(model, GenerativeEstimator | groundstate.LatentDiffusion)
    drawn = model.sample(7, random_state=0)
    assert np.shape(drawn) == (7, *np.shape(X)[1:]) == (7, *model.event_shape_)
    assert np.isfinite(np.asarray(drawn, float)).all()
    np.testing.assert_array_equal(drawn, model.sample(7, random_state=0))
    assert not np.array_equal(model.sample(200, random_state=0), model.sample(200, random_state=1))
    with pytest.raises(ValueError, match="n_samples"):
        model.sample(0)
    if "temperature" not in case.not_for:
        assert np.shape(model.sample(3, T=0.5, random_state=0))[0] == 3


@asked()
def test_density_says_of_what_kind_it_is(name: str) -> None:
    case = ALL[name]
    X, model = case.rows(), case.fit()
    assert model.log_prob_kind_ in KINDS
    assert case.kind is None or model.log_prob_kind_ == case.kind
    if model.log_prob_kind_ == "none":
        with pytest.raises(Unsupported, match="assess_generator"):
            model.score_samples(X)
    else:
        scores = model.score_samples(X)
        assert scores.shape == (N,) and np.isfinite(scores).all()
        whole = scores.sum() if case.total else scores.mean()
        assert model.score(X) == pytest.approx(whole, rel=1e-6, abs=0.05)
    e = model.energy(X)
    assert e.shape == (N,) and np.isfinite(e).all()


@asked("impute")
def test_known_cells_never_change(name: str) -> None:
    case = ALL[name]
    X, model = case.rows(), case.fit()
    gaps = np.array(X[:6], float)
    flat = gaps.reshape(6, -1)
    flat[0, 0] = flat[1, -1] = flat[2, :2] = np.nan
    flat[3] = np.nan
    known = ~np.isnan(gaps)
    for how in ("mean", "minimise", "sample"):
        filled = np.asarray(model.impute(gaps, how, random_state=0), float)
        assert filled.shape == gaps.shape and np.isfinite(filled).all(), how
        np.testing.assert_array_equal(filled[known], gaps[known])
    again = model.impute(gaps, "sample", random_state=0)
    np.testing.assert_array_equal(again, model.impute(gaps, "sample", random_state=0))
    assert np.shape(model.infer({"x": gaps}, "x", "sample", n=2, random_state=0)) == (
        2,
        *gaps.shape,
    )


@asked("y")
def test_conditions(name: str) -> None:
    case = ALL[name]
    X = case.rows()
    y = np.where(
        np.asarray(X).reshape(N, -1).mean(1) > np.median(np.asarray(X).mean()), "high", "low"
    )
    model = case.fit(y)
    assert np.shape(model.sample(4, y="high", random_state=0)) == (4, *model.event_shape_)
    assert np.shape(model.sample(y=["high", "low"], random_state=0))[0] == 2
    assert np.shape(model.sample(4, random_state=0))[0] == 4
    with pytest.raises(DataError, match="not seen in fit"):
        model.sample(1, y="other")
    if model.log_prob_kind_ != "none":
        assert np.isfinite(model.score_samples(X, y)).all()
        assert np.isfinite(model.score_samples(X)).all()


@asked("mixed")
def test_tables_of_mixed_columns(name: str) -> None:
    case = ALL[name]
    table = mixed()
    model = case.fit(X=table)
    drawn = model.sample(30, random_state=0)
    assert isinstance(drawn, pd.DataFrame) and list(drawn.columns) == ["kind", "size"]
    assert set(drawn["kind"]) <= {"a", "b", "c"}
    assert np.isfinite(drawn["size"]).all()
    if "impute" not in case.not_for:
        gaps = table.head(5).copy()
        gaps.loc[0, "size"] = np.nan
        gaps.loc[1, "kind"] = None
        filled = model.impute(gaps, "sample", random_state=0)
        assert filled["kind"].notna().all() and np.isfinite(filled["size"]).all()
        assert filled["kind"][0] == table["kind"][0] and filled["size"][1] == table["size"][1]


def draw_five(path: Path, out: Path) -> None:
    np.save(out, np.asarray(groundstate.load(path).sample(5, random_state=3), float))


@asked()
def test_a_stored_model_answers_the_same_in_another_process(name: str, tmp_path: Path) -> None:
    case = ALL[name]
    model = case.fit()
    path = model.save(tmp_path / "model.gs")
    here = np.asarray(model.sample(5, random_state=3), float)
    back = groundstate.load(path)
    np.testing.assert_array_equal(np.asarray(back.sample(5, random_state=3), float), here)
    np.testing.assert_array_equal(back.energy(case.rows()), model.energy(case.rows()))
    out = tmp_path / "drawn.npy"
    assert elsewhere(draw_five, path, out) == 0
    np.testing.assert_allclose(np.load(out), here, atol=1e-9)
