"""Why a model of a table answers what it does: Shapley values of the table's columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from groundstate.data import Table, read
from groundstate.errors import DataError

if TYPE_CHECKING:
    from groundstate.models.shapley import ShapleyValues
    from groundstate.models.shapley.game import Game


class Explained:
    """What `TablePredictor` adds to explain single rows.

    Attributes
    ----------
    background_ : dict of lists, or None
        Some training rows, which stand for typical ones; kept on request and saved with the model.
    """

    background_: dict[str, list[Any]] | None = None

    def keep_background(self, rows: Any, n_rows: int = 64) -> Self:
        """Keep some of the rows as typical ones, chosen by their content, for `explain`.

        They are saved with the model: keep none where the rows are private.
        """
        from groundstate.compute.random import Key
        from groundstate.compute.weight_line.line import WeightLine

        table = table_rows(self, rows)
        line = WeightLine.of(*(table.values(name) for name in table.columns))
        some = line.order(Key.of(0).fold("background"))[:n_rows]
        frame = table.frame[np.sort(np.asarray(some))]
        dates = [name for name in frame.columns if frame[name].dtype.is_temporal()]
        plain = frame.with_columns(pl.col(name).cast(pl.String) for name in dates)
        self.background_ = plain.to_dict(as_series=False)
        return self

    def explain(
        self,
        X: Any,
        background: Any = None,
        *,
        method: Any = "auto",
        n_pairs: int | None = None,
        random_state: Any = 0,
        progress: Any = None,
    ) -> ShapleyValues:
        """Why these predictions: how much each column of the table moved each of them.

        Parameters
        ----------
        X
            Rows to explain.
        background
            Rows that stand for typical ones, such as some training rows; by default those that
            `keep_background` kept, which studies and ``groundstate fit`` call.
        method, n_pairs, random_state, progress
            See :func:`groundstate.evaluate.shapley_values`.

        Examples
        --------
        >>> from groundstate import Ridge, TablePredictor
        >>> rows = {"size": [1.0, 2.0, 3.0, 4.0], "colour": ["red", "red", "blue", "blue"]}
        >>> model = TablePredictor(Ridge(alpha=1e-9)).fit(rows, [1.0, 2.0, 4.0, 5.0])
        >>> why = model.explain({"size": [4.0], "colour": ["blue"]}, rows)
        >>> [(part["column"], round(part["amount"], 2)) for part in why.top(0)]
        [('size', 1.5), ('colour', 0.5)]
        """
        from groundstate.models.shapley import shapley_values

        rest = self.background_ if background is None else background
        if rest is None:
            raise DataError(
                "there are no background rows: pass background=training_rows, or call "
                "keep_background(training_rows) once after fit"
            )
        return shapley_values(
            self, X, rest, method=method, n_pairs=n_pairs, random_state=random_state,
            progress=progress,
        )  # fmt: skip

    def _game(self: Any, X: Any, background: Any) -> Game:
        """Columns of the table as players, by the numbers that they became where each has its own."""
        from groundstate.models.shapley.game import Game, answers, of_cells

        rows, back = table_rows(self, X), table_rows(self, background)
        names, owner = rows.columns, _owner(self)
        numbers, rest = self.prepare(rows), self.prepare(back)
        if hasattr(numbers, "toarray"):  # sparse cells cannot be mixed one by one
            owner = None
        shift, scale = units_of(self)
        if owner is not None:
            ask, outputs, units = answers(self.estimator_)

            def prepared(mixed: NDArray[Any]) -> NDArray[np.float64]:
                return np.asarray(shift + scale * ask(mixed))

            return Game(
                names, numbers, rest, owner, prepared, outputs, units,
                self.estimator_, scale, shift,
            )  # fmt: skip
        pool = pl.concat([rows.frame, back.frame], how="vertical_relaxed")
        answer, outputs, units = answers(self)

        def gathered(at: NDArray[np.int64]) -> NDArray[np.float64]:
            mixed = pl.DataFrame({n: pool[n].gather(at[:, j]) for j, n in enumerate(names)})
            return answer(Table(mixed, rows.schema))

        return of_cells(pool, rows.n_rows, gathered, outputs, units)


def table_rows(model: Any, X: Any) -> Table:
    """Rows as a table with the features that the model was fitted on."""
    check_is_fitted(model, "estimator_")
    schema = model.preparation_.schema_
    known = isinstance(X, Table) and all(
        c.name in X.schema and X.schema[c.name].kind == c.kind for c in schema
    )
    frame = X.frame if known else read(X, schema=schema).frame
    return Table(frame.select(list(schema.names)), schema)


def units_of(model: Any) -> tuple[float, float]:
    """Shift and factor from what the estimator predicts to the target's units."""
    if model.target_scale_ is None:
        return 0.0, 1.0
    shift = float(np.asarray(model._back(0.0)))
    return shift, float(np.asarray(model._back(1.0))) - shift


def _owner(model: Any) -> NDArray[np.intp] | None:
    """The column of the table that each prepared number comes from; None if one comes from two."""
    members = getattr(model, "members_", None)
    if members is not None:  # their numbers stand side by side
        owners = [_owner(member) for member in members]
        known = [owner for owner in owners if owner is not None]
        return np.concatenate(known) if len(known) == len(owners) else None
    prep = model.preparation_
    place = {name: j for j, name in enumerate(prep.schema_.names)}
    owner: list[int] = []
    for name, encoder in prep.encoders_.items():
        if name not in place:
            return None
        owner += [place[name]] * len(encoder.names(name))
    return np.array(owner) if len(owner) == len(prep.feature_names_out()) else None
