"""A study as plain data: what ``report.json`` holds and the HTML is written from."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from typing import Any

import numpy as np

from groundstate.data import Table
from groundstate.models.explain import explain
from groundstate.models.table import TablePredictor
from groundstate.report.job import Study
from groundstate.report.numbers import plain, span
from groundstate.report.verdict import three_sentences

FORMAT = 1
LIBRARIES = ("groundstate", "numpy", "torch", "scikit-learn")
_TOP_WEIGHTS = 20


def report_facts(found: Study) -> dict[str, Any]:
    """Everything a reader or a program needs to know, a function of the table and the settings.

    No times, dates, paths or machine: the same seed gives the same bytes.
    """
    train, test = len(found.split.train_rows), len(found.split.test_rows)
    told: dict[str, Any] = {
        "groundstate_report": FORMAT,
        "task": found.task,
        "table": table_facts(found.table),
        "settings": {
            "seed": found.settings.seed,
            "test": found.settings.test,
            "cv": len(found.assessment.folds),
            "level": found.settings.level,
            "metric": found.settings.metric,
            "models": list(found.settings.models),
            "device": found.settings.device,
        },
        "audit": [finding.to_dict() for finding in found.findings],
        "rows": {"train": train, "test": test},
        "leaderboard": found.board.to_dict(times=False),
        "chosen": found.chosen,
        "tied": list(found.board.tied),
        "test_looks": 1,
        "test": {
            "scores": {name: span(value) for name, value in found.scores.items()},
            "baseline": {name: span(value) for name, value in found.baseline.items()},
        },
    }
    if found.assessment.classes is not None:
        told["classes"] = [str(label) for label in found.assessment.classes]
        told["test"]["confusion"] = confusion(found).tolist()
    told["energy"] = energy_facts(found)
    told["weights"] = weights(found.model)
    told["model"] = model_facts(found.model)
    told["versions"] = {name: version(name) for name in LIBRARIES}
    told = plain(told)
    return {"verdict": three_sentences(told), **told}


def table_facts(table: Table) -> dict[str, Any]:
    """Size, columns and notes of a table, and a fingerprint of its content."""
    return {
        "name": table.name,
        "description": table.description,
        "rows": table.n_rows,
        "columns": table.n_columns,
        "target": table.target,
        "sha256": fingerprint(table),
        "schema": [
            {
                "name": column.name,
                "kind": column.kind,
                "distinct": column.n_unique,
                "missing": column.missing,
                "role": "target" if column.name == table.target else "feature",
            }
            for column in table.schema
        ],
        "notes": list(table.notes),
    }


def fingerprint(table: Table) -> str:
    """SHA-256 of the values in canonical form: tells whether a table has changed."""
    return hashlib.sha256(table.frame.write_csv().encode()).hexdigest()


def confusion(found: Study) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Test rows by true class (rows) and predicted class (columns).  # (K, K)"""
    assert found.assessment.classes is not None
    k = len(found.assessment.classes)
    cells = found.truth.astype(np.int64) * k + found.prediction.values
    return np.bincount(cells, minlength=k * k).reshape(k, k)


def energy_facts(found: Study) -> dict[str, Any] | None:
    """How far apart right and wrong answers are in energy, on the test rows."""
    values = energies(found)
    if values is None:
        return None
    if found.task == "classification":
        return {"gap_median": float(np.median(values)), "gap_positive": float((values > 0).mean())}
    return {"mean": float(values.mean()), "median": float(np.median(values))}


def energies(found: Study) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    r"""Per test row: :math:`\min_{y' \ne y} e(x, y') - e(x, y)` of classes, else :math:`e(x, y)`.

    A gap above zero is a right answer; the larger it is, the surer. None for a model without an
    energy.
    """
    model, rows = found.model, found.test_rows
    if not hasattr(model, "energy"):
        return None
    if found.assessment.classes is None:
        return np.asarray(model.energy(rows, rows.y.astype(np.float64)), np.float64)
    table = np.stack(
        [model.energy(rows, np.full(rows.n_rows, label)) for label in found.assessment.classes], 1
    )  # (n, K)
    at = np.arange(rows.n_rows), found.truth.astype(np.int64)
    own = table[at].copy()
    table[at] = np.inf
    return np.asarray(table.min(1) - own, np.float64)


def weights(model: TablePredictor) -> list[dict[str, Any]]:
    """The largest coefficients of a linear model, per standardised column."""
    coef = getattr(model.estimator_, "coef_", None)
    if coef is None:
        return []
    size = np.sqrt(np.square(np.atleast_2d(coef)).mean(0))  # (d,)
    names = model.preparation_.feature_names_out()
    order = np.argsort(-size, kind="stable")[:_TOP_WEIGHTS]
    return [{"column": names[i], "weight": float(size[i])} for i in order]


def model_facts(model: TablePredictor) -> dict[str, Any]:
    """The chosen estimator, its parameters and, where it has an energy, what it is made of."""
    estimator = model.estimator_
    told: dict[str, Any] = {
        "name": type(estimator).__name__,
        "parameters": {
            name: value if isinstance(value, str | int | float | None) else repr(value)
            for name, value in sorted(estimator.get_params(deep=False).items())
        },
        "columns_in": model.n_features_in_,
        "numbers_in": len(model.preparation_.feature_names_out()),
        "preparation": list(model.preparation_.notes_),
    }
    if hasattr(estimator, "energy"):
        told["explanation"] = explain(model).to_dict()
    return told


__all__ = ["energies", "fingerprint", "report_facts", "table_facts"]
