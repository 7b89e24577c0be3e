"""``groundstate impute``: a table with its empty cells filled and every other cell as it was."""

from __future__ import annotations

import sys
from typing import Any

import polars as pl

from groundstate.cli.loading import load_model, named, without_distribution
from groundstate.cli.screen import Screen
from groundstate.data import Schema, Table, Written, written
from groundstate.data.messages import listing
from groundstate.data.tables.match import matches
from groundstate.data.tables.rewrite import filled_in
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
    cells = written(model if table is None else table)
    if table is None:
        rows = cells.table()
        rows = rows.features if rows.target else rows
        loaded: Any = _mixture(rows, seed) if _gaps(rows) else None
    else:
        loaded = load_model(model, device)
        rows = _read(loaded, cells)
    found = filled_by(loaded, rows, mode, seed) if _gaps(rows) else {}
    filled = filled_in(cells, rows, found)
    left = [name for name in _gaps(rows) if name not in found or found[name].null_count()]
    for note in matches(rows.notes):
        sys.stderr.write(f"note: {note}\n")
    if left:
        stay = "keeps its gaps" if len(left) == 1 else "keep their gaps"
        sys.stderr.write(f"note: {listing(left)} {stay}: the model says nothing about them\n")
    screen.frame(filled, out)


def _gaps(rows: Table) -> list[str]:
    return [name for name in rows.columns if rows.frame[name].null_count()]


def _read(model: Any, cells: Written) -> Table:
    """The cells as the model read its own, whatever they would look like by themselves."""
    if not isinstance(model, TableGenerator | TablePredictor):
        raise DataError(f"a file of {named(model)} alone knows no columns; save what fit makes")
    if isinstance(model, TableGenerator):
        return cells.table(schema=model.schema_.with_target(None), gaps=True)
    rows, target = cells.table(schema=model.preparation_.schema_), model.target_
    if target not in cells.frame.columns or target not in model.schema_:
        return rows
    truth = model.schema_.select([target]).with_target(None)
    own = cells.select([target]).table(schema=truth)
    schema = Schema((*rows.schema, *own.schema))
    return Table(rows.frame.with_columns(own.frame[target]), schema, rows.notes, rows.name)


def filled_by(model: Any, rows: Table, mode: str, seed: int) -> dict[str, pl.Series]:
    """Columns of the rows with values in their gaps."""
    if isinstance(model, TableGenerator):
        how = "minimise" if mode == "min" else "sample"
        made = model.impute(rows, how, random_state=seed)
        return {name: made[name] for name in made.columns}
    return _by_predictor(model, rows, mode, seed)


def _by_predictor(model: TablePredictor, rows: Table, mode: str, seed: int) -> dict[str, pl.Series]:
    names = [name for name in rows.columns if name in model.preparation_.schema_]
    found: dict[str, pl.Series] = {}
    features = rows.select(names)
    open_x = _gaps(features)
    able = hasattr(model, "infer") and hasattr(model.estimator_, "sample")
    target = model.target_
    open_y = target in _gaps(rows)
    if open_x and not able and not open_y:
        raise without_distribution(
            model,
            f"the gaps of {listing(open_x)} cannot be filled (impute TABLE without a model fits a "
            "mixture to the table itself)",
        )
    if open_x and able:
        made = model.infer({"x": features}, _asked(model), mode, random_state=seed)
        made = made["x"] if isinstance(made, dict) else made
        found = {name: made[name] for name in made.columns}
    if open_y and hasattr(model, "predict"):
        found[target] = pl.Series(target, model.predict(features))
    return found


def _asked(model: TablePredictor) -> tuple[str, ...]:
    """The columns, and with them all else that the model leaves open."""
    spaces = model.estimator_.energy_.spaces
    return ("x", *(name for name in spaces if name != "x"))


def _mixture(source: Table, seed: int) -> TablePredictor:
    from groundstate.models.mixtures.gaussian_mixture import GaussianMixture

    size = max(1, min(_MOST, source.n_rows // _ROWS_PER_COMPONENT))
    density = GaussianMixture(n_components=size, reg_covar=1e-3, random_state=seed)
    return TablePredictor(density).fit(source)
