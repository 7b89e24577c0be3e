"""Spaces, and the default space of every estimator."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.stats
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from sklearn.datasets import load_iris, make_regression
from sklearn.utils import get_tags

from groundstate.errors import DataError
from groundstate.models.rows.kinds import KINDS
from groundstate.registry import models
from groundstate.tune import Choice, Real, Space, Whole, default_space
from groundstate.tune.samplers.cube import Cube

SLOW = {  # few steps keep a fit short; the row is otherwise the default
    "n_estimators": 5, "max_iter": 20, "n_iter": 2, "n_snapshots": 2, "burn_in": 2, "every": 1,
}  # fmt: skip
FEWEST = {  # of models that refuse fewer steps, or whose steps are long
    "LocallyAdaptiveNormal": {"n_points": 9, "n_nodes": 36, "max_iter": 1},
    "ObjectDetector": {"max_epochs": 1},
    "Segmenter": {"max_epochs": 1},
    "TSNE": {"max_iter": 250},
}


def test_round_trips() -> None:
    space = Space(
        {
            "C": FloatDistribution(1e-3, 1e3, log=True),
            "k": IntDistribution(1, 9, step=2),
            "kernel": CategoricalDistribution(("rbf", "poly")),
            "tol": Real(0.0, 1.0, step=0.5),
            "shift": scipy.stats.norm(0, 2),
            "rate": scipy.stats.loguniform(1e-4, 1e-1),
            "depth": scipy.stats.randint(1, 8),
        }
    )
    assert Space.from_json(space.to_json()) == space
    again = Space(space.distributions())
    assert again.distributions() == space.distributions()
    assert space["rate"] == Real(1e-4, 1e-1, log=True) and space["depth"] == Whole(1, 7)
    assert list(space.priors) == ["shift"]
    assert Space({"k": [1, 2, 3], "b": Whole(0, 3), "c": ["x", "y"]}).size == 24
    assert space.size == np.inf


def test_prior_is_uniform_in_the_cube() -> None:
    space = Space({"shift": scipy.stats.norm(1.0, 2.0)})
    cube = Cube(space.distributions(), space.priors)
    u = np.linspace(0.01, 0.99, 99)
    x = np.array([cube.setting([v])["shift"] for v in u])
    np.testing.assert_allclose(scipy.stats.norm(1.0, 2.0).cdf(x), u, atol=2e-3)
    np.testing.assert_allclose([cube.point({"shift": v})[0] for v in x], u, atol=1e-9)


def test_errors_say_what_to_do() -> None:
    with pytest.raises(DataError, match="expected Real, Whole, Choice, a list"):
        Space({"C": 3.0})
    with pytest.raises(DataError, match="0 < low <= high on a logarithmic scale"):
        Space({"C": Real(0.0, 1.0, log=True)})
    with pytest.raises(DataError, match="give a step or a list"):
        Space({"C": Real(0.0, 1.0)}).grid()
    with pytest.raises(DataError, match="conditional space is code"):
        Space(lambda trial: {}).to_json()
    with pytest.raises(DataError, match="a space is a mapping"):
        Space(3)  # type: ignore[arg-type]


def test_objects_are_stored_as_their_texts() -> None:
    choice = Choice((32,), (64, 64))
    assert choice.labels == ("(32,)", "(64, 64)")
    assert Space({"hidden": choice}).value("hidden", "(64, 64)") == (64, 64)
    assert Choice(object, object).labels[0].startswith("0: ")


def rows(name: str) -> tuple[Any, np.ndarray | None]:
    row = models[name]
    if row.rows != "table":
        X = KINDS[row.rows].example(60)
        target = row.obj()._example_target(X)
        if target is None and row.obj._takes_target:
            target = np.arange(60) % 2
        return X, target
    if row.role == "regressor":
        X, y = make_regression(60, 4, noise=1.0, random_state=0)
        positive = get_tags(models[name].obj()).target_tags.positive_only
        return X, np.exp(y / 100) if positive else y
    X, y = load_iris(return_X_y=True)
    X, y = X[::2], y[::2]
    if name == "BernoulliRBM":
        X = (X.mean(0) < X).astype(float)
    return X, y if row.role == "classifier" or row.obj._takes_classes else None


@pytest.mark.parametrize("name", models.names())
def test_default_space_of_every_estimator_fits(name: str) -> None:
    X, y = rows(name)
    estimator: Any = models[name].obj()
    space = default_space(estimator)
    assert Space(estimator.default_space()) == space
    space.check(estimator)
    if not len(space):
        return
    cube = Cube(space.distributions(), space.priors)
    known = estimator.get_params()
    quick = {key: value for key, value in SLOW.items() if key in known} | FEWEST.get(name, {})
    for u in ([0.05] * len(cube), [0.95] * len(cube)):
        setting = {**space.decode(cube.setting(u)), **quick}
        if "n_components" in setting:
            setting["n_components"] = min(setting["n_components"], 4)
        model = models[name].obj(**setting)
        with warnings.catch_warnings():  # few steps do not converge
            warnings.simplefilter("ignore")
            model.fit(X, y)


def test_import_without_optuna_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['optuna'] = None\n"
        "import groundstate.tune as tune\n"
        "tune.default_space; tune.Space({'C': [1, 2]}); tune.expected_improvement(0.5, 0.2, 0.4)\n"
        "for name in ('SMBOSampler', 'CEMSampler'):\n"
        "    try:\n"
        "        getattr(tune, name)\n"
        "    except Exception as error:\n"
        "        assert \"pip install 'groundstate[tune]'\" in str(error), error\n"
        "    else:\n"
        "        raise AssertionError(name)\n"
        "import groundstate\n"
        "try:\n"
        "    tune.Tune(groundstate.Ridge()).fit([[0.0], [1.0]], [0.0, 1.0])\n"
        "except Exception as error:\n"
        "    assert \"pip install 'groundstate[tune]'\" in str(error), error\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
