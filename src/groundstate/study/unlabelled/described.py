r"""The columns that a density describes: texts are left out, and numbers that other columns fix.

Where a column is a linear function of others, :math:`x_j = a + \sum_{k<j} b_kx_k`, rows lie in a plane, on
which a density of all columns grows without bound: what ranks models then is how thin each lets it be.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from groundstate.data import Finding, Table
from groundstate.data.messages import listing
from groundstate.study.unlabelled.cells import truth_of

F64 = NDArray[np.float64]
_ROUNDING = 1e-7  # of the spread of a column
_ROWS = 1_000  # on which it is found out which of the others are needed


def described(table: Table) -> tuple[Table, tuple[Finding, ...]]:
    """The table without texts and without columns that others fix, and findings about these.

    The words of a text become many columns that are almost always 0, whose densities grow without
    bound and drown those of the other columns.

    Examples
    --------
    >>> from groundstate.data import read
    >>> rows = {"a": [1.0, 2.5, 2.0, 4.0, 8.0], "b": [1.0, 0.5, 3.0, 2.0, 1.0]}
    >>> rows["total"] = [x + y for x, y in zip(rows["a"], rows["b"])]
    >>> kept, findings = described(read(rows))
    >>> kept.columns, findings[0].code
    (('a', 'b'), 'fixed_columns')
    """
    findings = []
    texts = tuple(name for name in table.columns if table.column(name).kind == "text")
    if texts and len(texts) < table.n_columns:
        sentence = (
            f"{listing(texts)} {'is' if len(texts) == 1 else 'are'} text, which no density here describes: "
            "the other columns are described, and text is left out"
        )
        findings.append(Finding("text", "info", sentence, float(len(texts)), texts))
        table = table.select([name for name in table.columns if name not in texts])
    for column, others in fixed_columns(table).items():
        sentence = (
            f"{column!r} is a linear function of {listing(others, 4)} in every row and adds nothing to a "
            "density; left out"
        )
        findings.append(Finding("fixed_columns", "info", sentence, 1.0, (column, *others)))
        table = table.select([name for name in table.columns if name != column])
    return table, tuple(findings)


def fixed_columns(table: Table) -> dict[str, tuple[str, ...]]:
    """Numeric columns that earlier ones fix by a linear function, with those that do.

    A column with missing cells where the others are known stays: what it says there is worth filling.
    """
    names = [name for name in table.columns if table.schema[name].kind == "numeric"]
    X = np.column_stack([truth_of(table, name, "numeric") for name in names]) if names else None
    if X is None or len(names) < 2:
        return {}
    known = ~np.isnan(X)
    rows = X[known.all(1)]
    if len(rows) <= len(names) + 1:  # any column is a function of so many others
        return {}
    rows = rows - rows.mean(0)
    size = np.linalg.norm(rows, axis=0)
    found: dict[str, tuple[str, ...]] = {}
    kept: list[int] = []
    basis = np.empty((len(rows), 0))
    for j, name in enumerate(names):
        if not size[j] > 0:
            continue
        rest = rows[:, j] / size[j]
        for _ in range(2):  # once more for what rounding left of the first
            rest = rest - basis @ (basis.T @ rest)
        length = float(np.linalg.norm(rest))
        if length > _ROUNDING:
            basis = np.column_stack([basis, rest / length])
            kept.append(j)
            continue
        others = _needed(rows[:_ROWS], j, kept)
        if not (known[:, others].all(1) & ~known[:, j]).any():
            found[name] = tuple(names[k] for k in others)
    return found


def _needed(rows: F64, j: int, kept: list[int]) -> list[int]:
    """The columns among ``kept`` that fix column j, without those that can be spared."""
    wanted = rows[:, j] / np.linalg.norm(rows[:, j])

    def without(others: list[int]) -> tuple[float, F64]:
        known = rows[:, others]
        slopes = np.linalg.lstsq(known, wanted)[0]
        weights = np.abs(slopes) * np.linalg.norm(known, axis=0)
        return float(np.linalg.norm(wanted - known @ slopes)), weights

    _, weights = without(kept)
    others = [kept[i] for i in np.argsort(-weights, kind="stable") if weights[i] > _ROUNDING]
    for k in others[::-1]:
        fewer = [i for i in others if i != k]
        if fewer and without(fewer)[0] <= _ROUNDING:
            others = fewer
    return sorted(others)
