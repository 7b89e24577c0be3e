"""Tables as people have them: each is fitted as it is, and the report says what was done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groundstate.data import read
from groundstate.report import report, validate
from groundstate.study import assess_tuned

RNG = np.random.default_rng(7)
N = 90
X = RNG.normal(size=(N, 3)).round(3)
LABEL = np.where(X[:, 0] + 0.3 * RNG.normal(size=N) > 0, "yes", "no")


def _text(separator: str, header: bool = True, holes: str | None = None) -> str:
    rows = [separator.join(["a", "b", "c", "y"])] if header else []
    for i in range(N):
        cells = [str(v) for v in X[i]]
        if holes is not None and i % 7 == 0:
            cells[1] = holes
        rows.append(separator.join([*cells, LABEL[i]]))
    return "\n".join(rows) + "\n"


def _lines(extra: Callable[[int], str], name: str, label: Any = LABEL) -> str:
    head = f"a,b,{name},y\n"
    return head + "".join(f"{X[i, 0]},{X[i, 1]},{extra(i)},{label[i]}\n" for i in range(N))


def _dates(i: int) -> str:
    return str(np.datetime64("2020-01-01") + 3 * i)


def _words(i: int) -> str:
    bag = [
        "slow",
        "fast",
        "red",
        "blue",
        "heavy",
        "light",
        "cheap",
        "dear",
        "old",
        "new",
        "late",
        "far",
    ]
    return " ".join(bag[(i * k) % 12] for k in range(1, 9 + i % 5))


def _wide() -> str:
    table = RNG.normal(size=(100, 300)).round(3)
    y = np.where(np.arange(100) % 2 == 0, "up", "down")
    table[::2, :40] += 1
    head = ",".join(f"c{j}" for j in range(300)) + ",y\n"
    return head + "".join(",".join(map(str, row)) + f",{v}\n" for row, v in zip(table, y))


def _twice_named() -> str:
    return "a,a,c,y\n" + "".join(f"{r[0]},{r[1]},{r[2]},{v}\n" for r, v in zip(X, LABEL))


def _rare() -> Any:
    label = LABEL.copy().astype(object)
    label[[10, 50]] = "seldom"
    return label


TABLES: dict[str, str] = {
    "comma": _text(","),
    "semicolon": _text(";"),
    "tab": _text("\t"),
    "no header": _text(",", header=False),
    "question marks": _text(",", holes="?"),
    "NA": _text(";", holes="NA"),
    "empty": _text("\t", holes=""),
    "dates": _lines(_dates, "when"),
    "free text": _lines(_words, "remark"),
    "40 categories": _lines(lambda i: f"town {i * 7 % 40}", "town"),
    "300 columns": _wide(),
    "duplicate names": _twice_named(),
    "target with 3 missing": _lines(
        lambda i: str(X[i, 2]), "c", np.where(np.isin(np.arange(N), (3, 30, 60)), "", LABEL)
    ),
    "a class seen twice": _lines(lambda i: str(X[i, 2]), "c", _rare()),
}


@pytest.mark.parametrize("case", TABLES)
def test_table_is_fitted_as_it_is(case: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(TABLES[case])
    found = assess_tuned(path, "last", models="LogisticRegression", test=0.3, folds=2, budget=0.01)
    told, _ = report(found)
    validate(told)
    assert found.chosen == "LogisticRegression"
    assert found.scores["accuracy"].estimate > 0.55
    kinds = {column["name"]: column["kind"] for column in told["data"]["types"]}
    codes = {finding["code"] for finding in told["data"]["findings"]}
    if case == "dates":
        assert kinds["when"] == "date"
    if case == "free text":
        assert kinds["remark"] == "text"
    if case == "40 categories":
        assert kinds["town"] == "category"
    if case in ("question marks", "NA", "empty"):
        assert "missing" in codes
    if case == "target with 3 missing":
        assert found.table.n_rows == N - 3 and "missing_target" in codes
    if case == "a class seen twice":
        assert "tiny_classes" in codes
    if case == "300 columns":
        assert told["data"]["rows"] == 100 and told["data"]["columns"] == 301


def test_target_by_name_position_and_last(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(TABLES["comma"])
    for target in ("y", 3, -1, "-1", "last"):
        assert read(path).with_target(target).target == "y"


def test_many_rows_are_read_and_fitted_within_memory(tmp_path: Path) -> None:
    """6,000 rows × 30 columns; bench/scripts/large_table.py measures 500,000."""
    import tracemalloc

    rng = np.random.default_rng(0)
    table = rng.normal(size=(6_000, 29)).astype(np.float32)
    y = (table[:, 0] + rng.normal(size=6_000) > 0).astype(int)
    path = tmp_path / "large.csv"
    header = ",".join([*(f"c{j}" for j in range(29)), "y"])
    np.savetxt(path, np.c_[table, y], "%.4g", ",", header=header, comments="")
    assess_tuned(
        path, "y", models="LogisticRegression", budget=0.01
    )  # kernels compiled here are no data
    tracemalloc.start()
    found = assess_tuned(path, "y", models="LogisticRegression", budget=0.01)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.design.kind == "holdout" and found.design.validation is not None
    assert peak < 40 * table.nbytes, peak / table.nbytes  # 4 GiB allow 70 times 500,000 rows
