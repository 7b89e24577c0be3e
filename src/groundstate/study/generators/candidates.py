"""The generators that a study compares, and the simplest one beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from groundstate.compute.random import Key
from groundstate.errors import DataError
from groundstate.models.generative.tables.table_generator import TableGenerator
from groundstate.registry import models as registered

TABLES = ("TableMixture", "AutoregressiveDensity", "NormalizingFlow", "VAE")  # of `auto`
PICTURES = ("VAE", "DDPM")
BASELINE = "independent columns"


class IndependentColumns:
    """Every column as it was, none knowing of another: what a generator has to beat.

    >>> model = IndependentColumns(pl.DataFrame({"a": [1, 1], "b": ["x", "x"]}))
    >>> model.sample(2, random_state=0).rows()
    [(1, 'x'), (1, 'x')]
    """

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def sample(self, n: int, random_state: Any = None) -> Any:
        """Rows whose cells come from different rows."""
        key = Key.of(random_state)
        if isinstance(self.rows, pl.DataFrame):
            return pl.DataFrame(
                [
                    column.gather(key.fold(column.name).numpy().integers(0, len(column), n))
                    for column in self.rows
                ]
            )
        flat = self.rows.reshape(len(self.rows), -1)
        pick = key.numpy().integers(0, len(flat), (n, flat.shape[1]))
        made = (
            np.take_along_axis(flat, pick, 0)
            if n <= len(flat)
            else flat[pick, np.arange(flat.shape[1])]
        )
        return made.reshape(n, *self.rows.shape[1:])


def candidates(model: str, pictures: bool, seed: int, device: Any) -> dict[str, Callable[[], Any]]:
    """Makers of the generators to compare, by name."""
    able = {row.name: row.obj for row in registered if row.role == "generator"}
    if model == "auto":
        names = list(PICTURES if pictures else TABLES)
    elif model == "all":
        names = list(able)
    else:
        names = [name.strip() for name in model.split(",")]
    unknown = [name for name in names if name not in able]
    if unknown:
        raise DataError(
            f"{unknown[0]!r} is no generator; --model takes auto, all, or of {', '.join(sorted(able))}"
        )
    return {name: _maker(able[name], pictures, seed, device) for name in names}


def _maker(cls: Any, pictures: bool, seed: int, device: Any) -> Callable[[], Any]:
    def make() -> Any:
        given: dict[str, Any] = {"random_state": seed, "device": device}
        known = cls().get_params(deep=False)
        if "early_stopping" in known:
            given["early_stopping"] = True
        made = cls(**{k: v for k, v in given.items() if k in known and (v is not None)})
        if pictures and "network" in known:
            made.set_params(**_for_pictures(cls.__name__))
        return made if pictures else TableGenerator(made)

    return make


def _for_pictures(name: str) -> dict[str, Any]:
    """Settings with which a generator sees pictures as such."""
    known: dict[str, dict[str, Any]] = {"DDPM": {"network": "unet"}, "VAE": {"n_components": 16}}
    return known.get(name, {})
