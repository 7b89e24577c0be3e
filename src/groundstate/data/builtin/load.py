"""`load(name)`: tables that ship with scikit-learn, and worlds that are generated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from groundstate.data.builtin import generators as own
from groundstate.data.messages import did_you_mean, listing
from groundstate.data.tables.build import build
from groundstate.data.tables.frames import column_of, from_memory
from groundstate.data.tables.kinds import MISSING
from groundstate.data.tables.table import Table
from groundstate.errors import DataError


@dataclass(frozen=True)
class Builtin:
    """One built-in table: what it is and how it is made."""

    name: str
    description: str
    make: Callable[..., tuple[Any, Any, Sequence[str] | None]]
    n: int | None = None
    noise: float | None = None


def _shipped(name: str) -> Callable[..., tuple[Any, Any, Sequence[str] | None]]:
    def make() -> tuple[Any, Any, Sequence[str] | None]:
        from sklearn import datasets

        bunch = getattr(datasets, f"load_{name}")()
        y = bunch.target
        if name in ("iris", "wine", "breast_cancer"):
            y = np.asarray(bunch.target_names)[y]
        return bunch.data, y, [str(f) for f in bunch.feature_names]

    return make


def _sklearn(name: str, noise: str | None = None, **fixed: Any) -> Callable[..., Any]:
    """A generator of scikit-learn; `noise` is what it calls the noise level."""

    def make(n: int, level: float | None, seed: int, **options: Any) -> tuple[Any, Any, None]:
        from sklearn import datasets

        arguments = {**fixed, **options, "n_samples": n, "random_state": seed}
        if noise is not None:
            arguments[noise] = level
        X, y = getattr(datasets, f"make_{name}")(**arguments)
        return X, y, None

    return make


def _own(function: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any, None]]:
    def make(n: int, level: float, seed: int, **options: Any) -> tuple[Any, Any, None]:
        X, y = function(np.random.default_rng(seed), n, level, **options)
        return X, y, None

    return make


_ALL = (
    Builtin("iris", "150 irises of three species by four lengths", _shipped("iris")),
    Builtin("wine", "178 wines of three growers by 13 chemical measures", _shipped("wine")),
    Builtin("breast_cancer", "569 tumours, benign or malignant", _shipped("breast_cancer")),
    Builtin("digits", "1,797 handwritten digits as 8 × 8 pixels", _shipped("digits")),
    Builtin("diabetes", "442 patients, progression after a year", _shipped("diabetes")),
    Builtin("linnerud", "20 men, three exercises and three body measures", _shipped("linnerud")),
    Builtin("moons", "two half circles that interlock", _sklearn("moons", "noise"), 500, 0.2),
    Builtin(
        "circles", "a circle inside a circle", _sklearn("circles", "noise", factor=0.5), 500, 0.1
    ),
    Builtin("blobs", "three round clouds", _sklearn("blobs", "cluster_std"), 500, 1.0),
    Builtin(
        "classification",
        "20 columns, few of them informative, two classes",
        _sklearn("classification", "flip_y"),
        1000,
        0.01,
    ),
    Builtin(
        "regression",
        "20 columns, 10 of them in a linear model",
        _sklearn("regression", "noise", n_features=20),
        1000,
        10.0,
    ),
    Builtin("swiss_roll", "a rolled-up sheet in space", _sklearn("swiss_roll", "noise"), 1000, 0.0),
    Builtin("s_curve", "an S-shaped sheet in space", _sklearn("s_curve", "noise"), 1000, 0.0),
    Builtin(
        "friedman1", "a sine, a square and two lines", _sklearn("friedman1", "noise"), 500, 1.0
    ),
    Builtin("friedman2", "impedance of a circuit", _sklearn("friedman2", "noise"), 500, 1.0),
    Builtin("friedman3", "phase of a circuit", _sklearn("friedman3", "noise"), 500, 0.1),
    Builtin("gaussian_quantiles", "shells of one Gaussian", _sklearn("gaussian_quantiles"), 500),
    Builtin("hastie", "ten Gaussians, is their length large", _sklearn("hastie_10_2"), 2000),
    Builtin(
        "sparse_uncorrelated", "four of ten columns count", _sklearn("sparse_uncorrelated"), 500
    ),
    Builtin("two_gaussians", "two round classes side by side", _own(own.two_gaussians), 500, 1.0),
    Builtin("xor", "four clouds, the class is XOR of the signs", _own(own.xor), 500, 0.4),
    Builtin("disc", "inside or outside the unit disc", _own(own.disc), 500, 0.0),
    Builtin("rings", "eight Gaussians on a ring", _own(own.rings), 800, 0.2),
    Builtin("checkerboard", "a board of 4 × 4 squares", _own(own.checkerboard), 1000, 0.0),
    Builtin("spirals", "two interleaved spirals", _own(own.spirals), 500, 0.05),
    Builtin("pinwheel", "five bent blades", _own(own.pinwheel), 500, 0.05),
    Builtin(
        "bars_and_stripes",
        "binary pictures of bars or stripes",
        _own(own.bars_and_stripes),
        14,
        0.0,
    ),
    Builtin("sine", "one period of a sine with noise", _own(own.sine), 200, 0.2),
    Builtin("line", "a straight line with noise", _own(own.line), 200, 0.3),
)
_TABLES = {builtin.name: builtin for builtin in _ALL}


def available() -> dict[str, str]:
    """Names of the built-in tables with one line about each.

    >>> available()["iris"]
    '150 irises of three species by four lengths'
    """
    return {name: builtin.description for name, builtin in _TABLES.items()}


def is_builtin(source: Any) -> bool:
    """Whether a name means a built-in table: a file of that name comes first, a folder does not.

    >>> is_builtin("iris"), is_builtin("./iris")
    (True, False)
    """
    return isinstance(source, str) and source in _TABLES and not Path(source).is_file()


def load(
    name: str,
    *,
    n: int | None = None,
    noise: float | None = None,
    random_state: int = 0,
    **options: Any,
) -> Table:
    """A built-in table with its target chosen.

    Parameters
    ----------
    name
        One of `available()`; ``make_moons`` and ``moons`` are the same.
    n, noise
        Number of rows and noise level of a generated table; None for its default.
    random_state
        Seed of a generated table: the same seed gives the same table.
    **options
        Further arguments of the generator, for example ``side=4`` for ``bars_and_stripes``.

    Examples
    --------
    >>> table = load("iris")
    >>> table.n_rows, table.target, table.task
    (150, 'target', 'classification')
    >>> load("moons", n=100, noise=0.1).n_rows
    100
    """
    key = name.removeprefix("make_").removeprefix("load_") if isinstance(name, str) else ""
    if key not in _TABLES:
        guess = did_you_mean(str(name), _TABLES)
        raise DataError(
            f"there is no built-in table {name!r}{guess}; there are {listing(_TABLES, limit=40)}"
        )
    builtin = _TABLES[key]
    if builtin.n is None:
        if n is not None or noise is not None or options:
            raise DataError(f"{key!r} is a fixed table; n, noise and options do not apply")
        return _fixed(key)
    rows = builtin.n if n is None else n
    level = builtin.noise if noise is None else noise
    if isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 1:
        raise DataError(f"n must be a positive whole number, got {rows!r}")
    if noise is not None and builtin.noise is None:
        raise DataError(f"{key!r} has no noise level")
    if level is not None and not (np.isfinite(level) and level >= 0):
        raise DataError(f"noise must be a number of at least 0, got {noise!r}")
    try:
        made = builtin.make(int(rows), level, int(random_state), **options)
    except (TypeError, ValueError) as error:
        raise DataError(f"cannot generate {key!r} with {options or rows}: {error}") from None
    return _table(builtin, *made)


@lru_cache(maxsize=8)
def _fixed(name: str) -> Table:
    return _table(_TABLES[name], *_TABLES[name].make())


def _table(builtin: Builtin, X: Any, y: Any, names: Sequence[str] | None) -> Table:
    frame, _ = from_memory(np.asarray(X, dtype=np.float64))
    if names is not None:
        frame.columns = list(names)
    target = "target"
    if np.ndim(y) == 2:
        labels = ["Weight", "Waist", "Pulse"]
        target = labels[0]
        extra = [column_of(label, y[:, i]) for i, label in enumerate(labels)]
    else:
        whole = y.astype(np.int64) if y.dtype.kind == "f" and builtin.name == "hastie" else y
        extra = [column_of("target", whole)]
    # pixels and generated columns are numbers even where they happen to be constant
    kinds = dict.fromkeys([*frame.columns, *(c.name for c in extra[1:])], "numeric")
    table = build(frame.with_columns(extra), builtin.name, (), target, kinds, MISSING)
    return replace(table, description=builtin.description)
