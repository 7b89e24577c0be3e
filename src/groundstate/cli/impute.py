"""``groundstate impute``: a table with its empty cells filled and every other cell as it was."""

from __future__ import annotations

from typing import Any

import polars as pl

from groundstate.cli.loading import load_model, named, without_distribution
from groundstate.cli.screen import Screen
from groundstate.data import Table, read
from groundstate.data.messages import listing
from groundstate.errors import DataError
from groundstate.models.generative.tables.table_generator import TableGenerator
from groundstate.models.tables.table import TablePredictor

_ROWS_PER_COMPONENT = 50
_MOST = 8


def impute(
    model: str,
    table: str | None,
    mode: str,
    out: str,
    seed: int,
    device: str | None,
    json: bool,
    quiet: bool,
) -> None:
    """Fill the empty cells with a saved model, or with a mixture fitted to the table itself."""
    screen = Screen(json, not quiet)
    if mode not in ("min", "sample"):
        raise DataError(f"--mode is min (the best value) or sample (a drawn one), got {mode!r}")
    source = read(model if table is None else table)
    gaps = [name for name in source.columns if source.frame[name].null_count()]
    if not gaps:
        filled = source.frame
    elif table is None:
        filled = filled_by(_mixture(source, seed), source, mode, seed)
    else:
        filled = filled_by(load_model(model, device), source, mode, seed)
    screen.frame(filled, out)


def filled_by(model: Any, source: Table, mode: str, seed: int) -> pl.DataFrame:
    """The rows with their gaps filled; observed cells are never touched."""
    found: dict[str, pl.Series] = {}
    if isinstance(model, TableGenerator):
        how = "minimise" if mode == "min" else "sample"
        made = model.impute(source, how, random_state=seed)
        found = {name: made[name] for name in made.columns}
    elif isinstance(model, TablePredictor):
        found = _by_predictor(model, source, mode, seed)
    else:
        raise DataError(f"a file of {named(model)} alone knows no columns; save what fit makes")
    return observed_kept(source.frame, found)


def _by_predictor(model: TablePredictor, source: Table, mode: str, seed: int) -> dict[str, Any]:
    names = [str(name) for name in model.feature_names_in_]
    absent = [name for name in names if name not in source.columns]
    if absent:
        raise DataError(
            f"{named(model)} was fitted on columns that the table lacks: {listing(absent)}; add them, "
            "empty where nothing is known"
        )
    found: dict[str, Any] = {}
    open_x = [name for name in names if source.frame[name].null_count()]
    able = hasattr(model, "infer") and hasattr(model.estimator_, "sample")
    target = model.target_
    open_y = target in source.columns and bool(source.frame[target].null_count())
    if open_x and not able and not open_y:
        raise without_distribution(
            model,
            f"the gaps of {listing(open_x)} cannot be filled (impute TABLE without a model fits a "
            "mixture to the table itself)",
        )
    rows = read(source.frame.select(names), schema=model.preparation_.schema_)
    if open_x and able:
        made = model.infer({"x": rows}, _asked(model), mode, random_state=seed)
        made = made["x"] if isinstance(made, dict) else made
        found = {name: made[name] for name in made.columns}
    if open_y and hasattr(model, "predict"):
        found[target] = pl.Series(target, model.predict(rows))
    return found


def _asked(model: TablePredictor) -> tuple[str, ...]:
    """The columns, and with them all else that the model leaves open."""
    spaces = model.estimator_.energy_.spaces
    return ("x", *(name for name in spaces if name != "x"))


def observed_kept(frame: pl.DataFrame, found: dict[str, pl.Series]) -> pl.DataFrame:
    """The frame with found values in its empty cells alone, in the types that it has.

    >>> frame = pl.DataFrame({"a": [1, None], "b": ["x", "y"]})
    >>> observed_kept(frame, {"a": pl.Series([9.0, 2.6]), "b": pl.Series(["z", "z"])}).rows()
    [(1, 'x'), (3, 'y')]
    """
    out = frame
    for name, values in found.items():
        if name not in frame.columns or not frame[name].null_count():
            continue
        kind = frame[name].dtype
        new = pl.Series(name, values)
        if kind.is_integer() and new.dtype.is_float():
            new = new.round()
        whole = frame[name].fill_null(new.cast(kind, strict=False))
        out = out.with_columns(whole.alias(name))
    return out


def _mixture(source: Table, seed: int) -> TablePredictor:
    from groundstate.models.mixtures.gaussian_mixture import GaussianMixture

    size = max(1, min(_MOST, source.n_rows // _ROWS_PER_COMPONENT))
    density = GaussianMixture(n_components=size, reg_covar=1e-3, random_state=seed)
    return TablePredictor(density).fit(source.features if source.target else source)
