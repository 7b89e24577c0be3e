"""The contract of generators: coding, conditions, draws, density, missing cells, questions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from torch import Tensor, nn

import groundstate
from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.energy.spaces import Real
from groundstate.errors import DataError, ShapeError, Unsupported
from groundstate.models.generative.coding import Coding
from groundstate.models.generative.network import NetworkGenerator
from groundstate.store import register


@register
class Gaussian(Energy):
    r"""A Gaussian around a linear function of the context, -log N(x; m + Cy, LL^T)."""

    normalised = frozenset({"x"})

    def __init__(self, d: int, q: int = 0) -> None:
        spaces = {"x": Real(d)} if not q else {"x": Real(d), "y": Real(q)}
        super().__init__(**spaces)
        self.d, self.q = d, q
        self.mean, self.free = nn.Parameter(torch.zeros(d)), nn.Parameter(torch.zeros(d, d))
        self.shift = nn.Parameter(torch.zeros(d, max(q, 1)))

    def config(self) -> dict[str, Any]:
        return {"d": self.d, "q": self.q}

    def root(self) -> Tensor:
        return self.free.tril(-1) + torch.diag_embed(self.free.diagonal().exp())

    def centre(self, y: Tensor | None) -> Tensor:
        return self.mean if y is None else self.mean + y @ self.shift.T

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        u = torch.linalg.solve_triangular(self.root(), (x - self.centre(y)).T, upper=False)
        volume = self.free.diagonal().sum() + 0.5 * self.d * math.log(2 * math.pi)
        return 0.5 * u.square().sum(0) + volume


@register
class GaussianGenerator(NetworkGenerator):
    """A Gaussian that is learned by descent."""

    def __init__(
        self, solver: Any = "adam", learning_rate_init: float = 0.05, batch_size: int = 64,
        max_iter: int = 60, alpha: float = 0.0, early_stopping: bool = False,
        validation_fraction: float = 0.1, n_iter_no_change: float = np.inf, tol: float = 1e-4,
        warm_start: bool = False, scale: str | None = "standard", dequantize: bool = False,
        ema_decay: float | None = None, random_state: Any = None, device: Any = None,
        callbacks: Any = None,
    ) -> None:  # fmt: skip
        self._keep(locals())

    def _energy_of(self, x: Tensor, y: Tensor | None, key: Key) -> Energy:
        return Gaussian(x.shape[1], 0 if y is None else y.shape[1])

    def _draw(
        self, n: int, y: Tensor | None, T: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        energy: Any = self.energy_
        device, dtype = energy.placement()
        z = torch.randn(n, energy.d, generator=generator, device=device, dtype=dtype)
        return energy.centre(y) + math.sqrt(T) * z @ energy.root().T, z


MEAN, COV = (
    np.array([1.0, 1.0, -1.0]),
    np.array([[2.0, 2.0, 0.0], [2.0, 3.0, 0.0], [0.0, 0.0, 1.0]]),
)


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.random.default_rng(0).multivariate_normal(MEAN, COV, 4000)


@pytest.fixture(scope="module")
def model(rows: np.ndarray) -> GaussianGenerator:
    return GaussianGenerator(batch_size=4000, max_iter=400, random_state=0).fit(rows)


def test_density_is_in_the_units_of_the_rows(model: GaussianGenerator, rows: np.ndarray) -> None:
    from scipy.stats import multivariate_normal

    exact = multivariate_normal(rows.mean(0), np.cov(rows.T)).logpdf(rows).mean()
    assert model.score(rows) == pytest.approx(exact, abs=0.01)
    assert model.log_prob_kind_ == "exact"
    factors = np.array([10.0, 0.1, 3.0])
    other = GaussianGenerator(batch_size=4000, max_iter=400, random_state=0).fit(rows * factors)
    np.testing.assert_allclose(
        other.score_samples(rows * factors),
        model.score_samples(rows) - np.log(factors).sum(),
        atol=1e-3,
    )
    x = torch.from_numpy(rows[:5]).requires_grad_()
    model.log_prob(x).sum().backward()
    assert x.grad is not None and x.grad.abs().max() > 0
    np.testing.assert_allclose(
        model.log_prob(x).detach(), model.score_samples(rows[:5]), atol=1e-10
    )
    np.testing.assert_allclose(
        model.energy(rows[:5]), -model.score_samples(rows[:5]) - model.coding_.log_scale, atol=1e-10
    )


def test_draws_have_the_moments_and_do_not_depend_on_how_many(
    model: GaussianGenerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = model.sample(20_000, random_state=1)
    assert X.shape == (20_000, 3)
    np.testing.assert_allclose(X.mean(0), MEAN, atol=0.1)
    np.testing.assert_allclose(np.cov(X.T), COV, atol=0.2)
    np.testing.assert_array_equal(X, model.sample(20_000, random_state=1))
    np.testing.assert_array_equal(
        X, np.concatenate(list(model.iter_samples(20_000, random_state=1)))
    )
    np.testing.assert_array_equal(X[:8192], model.sample(8192, random_state=1))
    cold = model.sample(5000, T=0.25, random_state=1)
    np.testing.assert_allclose(np.cov(cold.T), COV / 4, atol=0.1)
    x, z = model.sample(3, return_latent=True, random_state=0)
    assert x.shape == z.shape == (3, 3)
    with pytest.raises(ValueError, match="n_samples must be at least 1"):
        model.sample(0)
    with pytest.raises(ValueError, match="T is a temperature"):
        model.sample(1, T=0)


def test_missing_cells_follow_the_conditional(model: GaussianGenerator) -> None:
    X = np.array([[np.nan, 2.0, -1.0], [0.5, 1.0, 0.0]])
    exact = model_conditional(model)
    mean = model.impute(X, random_state=0)
    assert mean[0, 0] == pytest.approx(exact[0], abs=0.25)
    np.testing.assert_array_equal(mean[1], X[1])
    np.testing.assert_array_equal(mean[0, 1:], X[0, 1:])
    many = np.repeat(X[:1], 2000, 0)
    drawn = model.impute(many, "sample", random_state=0)[:, 0]
    assert drawn.mean() == pytest.approx(exact[0], abs=0.1)
    assert drawn.var() == pytest.approx(exact[1], rel=0.1)
    best = model.impute(X, "minimise")
    assert best[0, 0] == pytest.approx(exact[0], abs=1e-3)
    assert model.impute(X, "sample", n_draws=3, random_state=0).shape == (3, 2, 3)
    empty = model.impute(np.full((2000, 3), np.nan), "sample", random_state=0)
    np.testing.assert_allclose(empty.mean(0), MEAN, atol=0.2)
    assert model.infer({"x": X}, "x").shape == (2, 3)
    assert model.infer({"x": X}, "x", "sample", n=4, random_state=0).shape == (4, 2, 3)
    assert model.infer({}, "x", "sample", n=4, random_state=0).shape == (4, 1, 3)


def model_conditional(model: Any) -> tuple[float, float]:
    """Mean and variance of the first column given the second, of the fitted Gaussian."""
    root = model.energy_.root().detach().numpy() * model.coding_.scale[:, None]
    cov = root @ root.T
    mean = model.energy_.mean.detach().numpy() * model.coding_.scale + model.coding_.mean
    known = np.linalg.solve(cov[1:, 1:], cov[1:, 0])
    return mean[0] + known @ (np.array([2.0, -1.0]) - mean[1:]), cov[0, 0] - known @ cov[1:, 0]


def test_classes_and_values_condition(rows: np.ndarray) -> None:
    y = np.where(rows[:, 0] > 1, "high", "low")
    model = GaussianGenerator(random_state=0).fit(rows, y)
    assert model.sample(500, y="high", random_state=0)[:, 0].mean() > 1.5
    assert model.sample(500, y="low", random_state=0)[:, 0].mean() < 0.5
    joint = [
        model.score_samples(rows, np.full(len(rows), c)) + np.log((y == c).mean())
        for c in ("high", "low")
    ]
    np.testing.assert_allclose(model.score_samples(rows), np.logaddexp(*joint), atol=1e-8)
    assert (model.infer({"x": rows}, "y") == y).mean() > 0.85
    assert model.infer({"x": rows[:5]}, "y", "sample", n=2, random_state=0).shape == (2, 5)
    assert model.sample(y=["high", "low"], random_state=0).shape == (2, 3)
    with pytest.raises(DataError, match="'other', which was not seen in fit"):
        model.sample(1, y="other")
    real = GaussianGenerator(random_state=0).fit(rows[:, :2], rows[:, 2])
    assert np.isfinite(real.score(rows[:, :2])) and real.sample(4, random_state=0).shape == (4, 2)
    with pytest.raises(ValueError, match="fitted without y"):
        GaussianGenerator(max_iter=1).fit(rows).sample(1, y=1)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_with_categories_come_back_as_frames(frame: Any) -> None:
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], 600, p=[0.2, 0.5, 0.3])
    size = np.where(kind == "a", 5.0, 0.0) + rng.normal(size=600)
    table = frame({"kind": kind.tolist(), "size": size, "count": rng.integers(0, 9, 600)})
    model = GaussianGenerator(random_state=0).fit(table)
    assert model.log_prob_kind_ == "bound"
    drawn = model.sample(50, random_state=0)
    assert isinstance(drawn, frame) and list(drawn.columns) == ["kind", "size", "count"]
    assert set(drawn["kind"].to_list() if frame is pl.DataFrame else drawn["kind"]) <= {
        "a",
        "b",
        "c",
    }
    assert str(drawn["count"].dtype).lower().startswith("int")
    assert model.score_samples(table).shape == (600,)
    whole = GaussianGenerator(random_state=0, dequantize=True).fit(np.arange(60).reshape(-1, 1) % 7)
    assert whole.log_prob_kind_ == "bound"
    assert (whole.sample(20, random_state=0) % 1 == 0).all()
    with pytest.raises(DataError, match="column 0 holds 0.5"):
        GaussianGenerator(dequantize=True).fit([[0.5], [1.0]])


def test_pictures_keep_their_shape(tmp_path: Any) -> None:
    X = np.random.default_rng(0).normal(size=(40, 2, 3, 3))
    model = GaussianGenerator(max_iter=2, random_state=0).fit(X)
    assert model.event_shape_ == (2, 3, 3)
    assert model.sample(5, random_state=0).shape == (5, 2, 3, 3)
    assert model.score_samples(X).shape == (40,)
    Y = X[:3].copy()
    Y[0, 0, 1] = np.nan
    filled = model.impute(Y, "minimise")
    assert filled.shape == Y.shape and np.isfinite(filled).all()
    np.testing.assert_array_equal(filled[1:], Y[1:])
    with pytest.raises(ShapeError, match=r"rows of shape \(2, 3, 3\), got \(3, 6\)"):
        model.score_samples(X.reshape(40, 3, 6))
    back = groundstate.load(model.save(tmp_path / "model.gs"))
    np.testing.assert_array_equal(back.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(back.sample(5, random_state=0), model.sample(5, random_state=0))


def test_torch_in_torch_out(rows: np.ndarray) -> None:
    x = torch.from_numpy(rows[:200])
    model = GaussianGenerator(max_iter=2, random_state=0).fit(x)
    assert isinstance(model.sample(2), Tensor) and isinstance(model.score_samples(x), Tensor)


def test_it_goes_on(rows: np.ndarray) -> None:
    model = GaussianGenerator(random_state=0)
    for _ in range(3):
        model.partial_fit(rows[:500])
    assert model._epochs == 3 and len(model.loss_curve_) == 3
    warm = GaussianGenerator(max_iter=2, warm_start=True, random_state=0).fit(rows[:500])
    assert warm.fit(rows[:500])._epochs == 4
    stopped = GaussianGenerator(early_stopping=True, n_iter_no_change=2, random_state=0).fit(rows)
    assert stopped.n_iter_ < 60 and len(stopped.validation_scores_) == stopped.n_iter_
    mean = GaussianGenerator(ema_decay=0.9, max_iter=3, random_state=0).fit(rows)
    assert np.isfinite(mean.score(rows))


def test_weights_are_repetitions(rows: np.ndarray) -> None:
    X, w = rows[:60], np.random.default_rng(1).integers(0, 4, 60)
    settings: dict[str, Any] = {"batch_size": 1000, "max_iter": 20, "random_state": 0}
    weighted = GaussianGenerator(**settings).fit(X, sample_weight=w)
    repeated = GaussianGenerator(**settings).fit(np.repeat(X, w, 0))
    np.testing.assert_allclose(weighted.score_samples(X), repeated.score_samples(X), atol=1e-8)


def test_no_density_points_to_other_checks(rows: np.ndarray) -> None:
    class Silent(GaussianGenerator):
        log_prob_kind = "none"

    with pytest.raises(Unsupported, match="assess_generator"):
        Silent(max_iter=1).fit(rows).score_samples(rows)


@pytest.mark.parametrize("code", ["dequantise", "onehot", "levels"])
@pytest.mark.parametrize("scale", ["standard", "minmax", None])
def test_codes_are_undone(code: str, scale: str | None) -> None:
    rng = np.random.default_rng(0)
    X = torch.from_numpy(
        np.column_stack([rng.normal(3, 5, 50), rng.integers(0, 4, 50), np.full(50, 2.0)])
    )
    coding = Coding.learned(X, {1: 4}, code=code, scale=scale)
    coded = coding.encode(X)
    assert coded.shape == (50, coding.size) == (50, 6 if code == "onehot" else 3)
    np.testing.assert_allclose(coding.decode(coded), X, atol=1e-12)
    assert coding.is_spread == (code == "dequantise")
    mask = torch.zeros(50, 3, dtype=torch.bool)
    mask[:, 1] = True
    assert int(coding.spread(mask).sum()) == 50 * (4 if code == "onehot" else 1)


def test_a_column_of_one_value_is_drawn_as_it_is(rows: np.ndarray, tmp_path: Any) -> None:
    X = np.insert(rows[:200], 1, 3.7, axis=1)
    weight = np.ones(200)
    X[0, 1], weight[0] = 5.0, 0.0  # a row of weight zero is no row
    model = GaussianGenerator(max_iter=1, random_state=0).fit(X, sample_weight=weight)
    drawn = model.sample(50, random_state=0)
    assert (drawn[:, 1] == 3.7).all() and (drawn.std(0)[[0, 2, 3]] > 0).all()
    gaps = X[1:5].copy()
    gaps[:, :2] = np.nan
    assert (model.impute(gaps, "sample", random_state=0)[:, 1] == 3.7).all()
    again = groundstate.load(model.save(tmp_path / "model.gs"))
    np.testing.assert_array_equal(again.sample(50, random_state=0), drawn)
