"""An assessment as plain data: what ``report.json`` holds and the page is written from."""

from __future__ import annotations

import hashlib
import json
import shlex
import warnings
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.data import Table
from groundstate.evaluate.intervals.variation import advice_of
from groundstate.math.stats.interval import Interval
from groundstate.models.explain import explain
from groundstate.models.tables.ensemble import TableEnsemble
from groundstate.models.tables.table import TablePredictor
from groundstate.study import held_out
from groundstate.study.assess import Assessment
from groundstate.study.candidates import DUMMY, inner_of
from groundstate.study.numbers import plain, span
from groundstate.study.question import Settings, positive_of
from groundstate.study.race.blend import ENSEMBLE
from groundstate.study.rare import rare_facts
from groundstate.study.selection import Developed
from groundstate.study.variation import SOURCES
from groundstate.study.verdict import three_sentences

FORMAT = 2
LIBRARIES = ("groundstate", "numpy", "torch", "scikit-learn")
_TOP_WEIGHTS = 20
# the usual values, which a command does not have to say; without a number of trials it tunes
_USUAL = replace(Settings(), tune=-1)


def report_facts(found: Assessment) -> dict[str, Any]:
    """Everything a reader or a program needs to know, a function of the table and the settings.

    No times, dates, paths or machine: the same seed gives the same bytes.
    """
    n = len(found.truth)
    facts: dict[str, Any] = {
        "groundstate_report": FORMAT,
        "task": found.task,
        "data": {**table_facts(found.table), "findings": [f.to_dict() for f in found.findings]},
        "design": {**found.design.to_dict(), **settings_facts(found.settings)},
        "chosen": found.chosen,
        "chosen_in_folds": found.chosen_in_folds,
        "candidates": found.board.to_dict(times=False),
        "scores": {name: span(value, n) for name, value in found.scores.items()},
        "baselines": {
            "skill": span(found.skill, n),
            "better_than_dummy": found.better_than_dummy,
            **{
                who: {name: span(_known(who, name, value), n) for name, value in row.items()}
                for who, row in found.baselines.items()
            },
            "worse_probabilities": held_out.worse_probabilities(
                found.scores, found.baselines.get(DUMMY, {})
            ),
        },
        "comparison": found.comparison,
        "calibration": found.calibration,
        "variation": variation_facts(found.variation),
        "curve": found.curve,
        "diagnosis": found.diagnosis,
        "tuning": tuning_facts(found),
        "bound": found.bound,
        "decision": found.decision,
        "explained": found.explained,
        "columns": found.columns,
        "ledger": found.ledger,
        "skipped": list(found.skipped),
        "stage": found.stage,
        "unfinished": list(found.unfinished),
    }
    if found.classes is not None:
        facts["classes"] = [str(label) for label in found.classes]
        facts["rare"] = rare_facts(
            found.table.y, found.truth, found.prediction, found.scores, found.settings.level,
            Key.of(found.settings.seed),
        )  # fmt: skip
        at = positive_of(found.table.y, found.classes, found.settings.positive)
        facts["design"]["positive"] = None if at is None else str(found.classes[at])
        facts["confusion"] = confusion_facts(found)
    facts["energy"] = energy_facts(found)
    facts["weights"] = weights(found.model)
    facts["model"] = model_facts(found.model)
    facts["reproduce"] = {
        "command": command(found.table, found.ran or found.settings),
        "seed": found.settings.seed,
        "versions": {name: version(name) for name in LIBRARIES},
    }
    facts = plain(facts)
    return {"verdict": three_sentences(facts), **facts}


def _known(who: str, name: str, found: Interval) -> Interval:
    """A constant answer ranks no row above another; folds of unequal shares would seem to."""
    if (who, name) != (DUMMY, "roc_auc"):
        return found
    return Interval(0.5, 0.5, 0.5, found.level, "by definition")


def settings_facts(settings: Settings) -> dict[str, Any]:
    """What was asked for."""
    return {
        "asked": settings.design,
        "metric": settings.metric,
        "chosen_by": settings.chosen_by or settings.metric,
        "models": list(settings.models),
        "level": settings.level,
        "folds": settings.folds,
        "test": settings.test if isinstance(settings.test, float) else bool(settings.test) or None,
        "seed": settings.seed,
        "device": settings.device,
        "groups": settings.groups,
        "time": settings.time,
        "weights": settings.weights,
        "positive": settings.positive,
        "budget": settings.budget,
        "tune": settings.tune,
        "params": settings.params,
    }


def command(table: Table, settings: Settings) -> str:
    """The command line that gives the same report, for a table of that name."""
    words = ["groundstate", "fit", table.name, "--target", str(table.target or "none")]
    words += ["--model", settings.spec or ",".join(settings.models)]
    if settings.chosen_by in ("", settings.metric):  # else it was not asked for
        words += ["--metric", settings.metric]
    words += ["--seed", str(settings.seed)]
    words += ["--quick"] if settings.quick else []
    if settings.thorough:  # which --quick contradicts: the same, as far as there is no clock
        words += ["--budget", "none"] if settings.quick else ["--thorough"]
    for name in ("test", "folds", "repeats", "level", "design", "seeds", "bootstrap", "budget",
                 "groups", "time", "weights", "positive", "cost_fp", "cost_fn", "tune",
                 "device"):  # fmt: skip
        value = getattr(settings, name, None)
        if value is not None and value != getattr(_USUAL, name, None):
            words += [f"--{name.replace('_', '-')}", str(value)]
    if settings.without:
        words += ["--without", ",".join(settings.without)]
    if settings.params:
        words += ["--params", json.dumps(settings.params)]
    return shlex.join(words)


def tuning_facts(found: Assessment) -> dict[str, Any] | None:
    """What was searched, every trial, and what came of it."""
    made = found.developed
    if made.tuned is None:
        return None
    return {
        "model": made.tuned.name or made.chosen,
        "space": made.tuned.space,
        "trials": made.tuned.trials,
        "importance": made.tuned.importance,
        "best": made.tuned.params,
        "best_score": made.tuned.score,
        "used": made.params,
        "words": made.untuned or _used(made),
    }


def _used(made: Developed) -> str:
    if made.chosen != ENSEMBLE:
        return "the best settings were better than the usual ones and are used"
    return "the best settings were better than the usual ones; the ensemble is better still"


def table_facts(table: Table) -> dict[str, Any]:
    """Size, columns and notes of a table, and a fingerprint of its content."""
    return {
        "name": table.name,
        "description": table.description,
        "hash": fingerprint(table),
        "rows": table.n_rows,
        "columns": table.n_columns,
        "target": table.target,
        "types": [
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


@lru_cache(maxsize=1)  # a study is written after every stage; tables do not change
def fingerprint(table: Table) -> str:
    """SHA-256 of the values in canonical form: tells whether a table has changed."""
    return hashlib.sha256(table.frame.write_csv().encode()).hexdigest()


def confusion(found: Assessment) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Judged rows by true class (rows) and predicted class (columns).  # (K, K)"""
    assert found.classes is not None
    k = len(found.classes)
    cells = found.truth.astype(np.int64) * k + found.prediction.values
    return np.bincount(cells, minlength=k * k).reshape(k, k)


def confusion_facts(found: Assessment) -> dict[str, Any]:
    """Counts of the table of right and wrong: of the first repeat where there are several."""
    counts = confusion(found)
    right = int(np.trace(counts))
    return {
        "counts": counts,
        "right": right,
        "n": int(counts.sum()),
        "accuracy": right / int(counts.sum()),
        "repeats": found.design.repeats,
    }


def variation_facts(moved: dict[str, Any] | None) -> dict[str, Any] | None:
    """How far the score moves, where seeds that were seen to move it never count as zero.

    Parts of a crossed design are estimated as differences and can come out as zero although the
    scores of several seeds on the same rows differ; then their own spread is what is known. The
    spread over resampled training rows is no such evidence: each is judged by other rows.
    """
    if moved is None:
        return None
    values = np.asarray(moved.get("seeds", {}).get("values", ()), np.float64)
    if moved["seed"] != 0 or len(values) < 2 or np.ptp(values) <= 1e-12:
        return moved
    effects = {**moved, "seed": float(np.std(values, ddof=1))}
    if "advice" in moved:
        effects["advice"] = advice_of({name: effects.get(name) or 0.0 for name in SOURCES})
    return effects


def energy_facts(found: Assessment) -> dict[str, Any] | None:
    """How far apart right and wrong answers are in energy, on the held-out rows."""
    values = energies(found)
    if values is None:
        return None
    if found.task == "classification":
        return {"gap_median": float(np.median(values)), "gap_positive": float((values > 0).mean())}
    return {"mean": float(values.mean()), "median": float(np.median(values))}


def energies(found: Assessment) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    r"""Per test row: :math:`\min_{y' \ne y} e(x, y') - e(x, y)` of classes, else :math:`e(x, y)`.

    A gap above zero is a right answer; the larger it is, the surer. None for a model without an
    energy, and where the model that is kept has seen every row.
    """
    model = found.model
    if found.design.kind == "nested" or not hasattr(model, "energy"):
        return None
    rows = found.table.take(found.judged)
    if found.classes is None:
        return np.asarray(model.energy(rows, rows.y.astype(np.float64)), np.float64)
    known = set(np.asarray(model.classes_).tolist())
    never = np.full(rows.n_rows, np.inf)  # a class that no training row had
    table = np.stack(
        [model.energy(rows, np.full(rows.n_rows, label)) if label in known else never
         for label in found.classes.tolist()], 1,
    )  # fmt: skip  # (n, K)
    at = np.arange(rows.n_rows), found.truth.astype(np.int64)
    own = table[at].copy()
    table[at] = np.inf
    with np.errstate(invalid="ignore"):
        gap = np.asarray(table.min(1) - own, np.float64)
    return np.where(np.isnan(gap), 0.0, gap)  # both impossible: no gap


def weights(model: Any) -> list[dict[str, Any]]:
    """The largest coefficients of a linear model, per standardised column."""
    coef = getattr(inner_of(model), "coef_", None)
    if coef is None or not isinstance(model, TablePredictor):
        return []
    size = np.sqrt(np.square(np.atleast_2d(coef)).mean(0))  # (d,)
    names = model.preparation_.feature_names_out()
    if len(size) != len(names):  # coefficients of something else, such as dual ones
        return []
    order = np.argsort(-size, kind="stable")[:_TOP_WEIGHTS]
    return [{"column": names[i], "weight": float(size[i])} for i in order]


def model_facts(model: Any) -> dict[str, Any]:
    """The chosen estimator, its parameters and, where it has an energy, what it is made of."""
    estimator = inner_of(model)
    if isinstance(model, TableEnsemble):
        names = [name for name, _ in model.estimators]
        parts = zip(names, model.members_, model.weights_.tolist(), strict=True)
        return {
            "name": ENSEMBLE,
            "parameters": {},
            "members": [{"name": n, "weight": a, **model_facts(m)} for n, m, a in parts],
            "columns_in": model.n_features_in_,
            "numbers_in": sum(estimator.widths),
            "preparation": list(dict.fromkeys(
                note for m in model.members_ for note in [*m.preparation_.notes_, *_target_note(m)]
            )),
        }  # fmt: skip
    facts: dict[str, Any] = {
        "name": type(estimator).__name__,
        "parameters": {
            name: value if isinstance(value, str | int | float | None) else repr(value)
            for name, value in sorted(estimator.get_params(deep=False).items())
        },
    }
    if isinstance(model, TablePredictor):
        facts |= {
            "columns_in": model.n_features_in_,
            "numbers_in": len(model.preparation_.feature_names_out()),
            "preparation": [*model.preparation_.notes_, *_target_note(model)],
        }
        if hasattr(estimator, "energy"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it asks the model about example rows
                facts["explanation"] = explain(model).to_dict()
    return facts


def _target_note(model: TablePredictor) -> list[str]:
    kept = model.target_scale_
    if kept is None:
        return []
    return [
        f"{model.target_} is learned less {float(kept.mean):.4g}, in units of {float(kept.scale):.4g}"
    ]
