"""``reproduce.py``: the study again, step by step, with the public API."""

from __future__ import annotations

from typing import Any

from groundstate.report.candidates import DUMMY

_TEMPLATE = '''\
"""Gives the numbers of this report again: python reproduce.py [TABLE]."""

import json
import sys

from sklearn.dummy import {dummy}

import groundstate as gs
from groundstate import data, evaluate
from groundstate.models.table import TablePredictor
from groundstate.report import fingerprint

SEED = {seed}


def main(source):
    # 1. the table; if its content has changed, so will the numbers
    table = data.read(source).with_target({target!r})
    if fingerprint(table) != {sha!r}:
        print("the table is not the one this report was made from", file=sys.stderr)

    # 2. test rows aside; equal rows stay on one side
    split = evaluate.train_test(table, table.y, test={test!r}, key=SEED, stratify={stratify})
    train, test = table.take(split.train_rows), table.take(split.test_rows)

    # 3. candidates, cross-validated on the training rows; each fold learns its own preparation
    candidates = {{
{candidates}
    }}
    found = evaluate.assess(
        {{name: TablePredictor(model) for name, model in candidates.items()}},
        train, train.y, task={task!r}, metric={metric!r}, cv={cv}, key=SEED,
    )

    # 4. the chosen model, refitted to all training rows, and the one look at the test rows
    seen = evaluate.score(
        found.model, test, test.y, metric={metric!r}, classes=found.classes, key=SEED
    )
    return {{
        "chosen": found.chosen,
        "tied": list(found.board.tied),
        "candidates": {{e.name: [e.score, e.low, e.high] for e in found.board}},
        "test": [seen.estimate, seen.low, seen.high],
    }}


if __name__ == "__main__":
    source = sys.argv[1] if len(sys.argv) > 1 else {source!r}
    print(json.dumps(main(source), indent=2))
'''

_SURVEY = '''\
"""Gives the numbers of this report again: python reproduce.py [TABLE]."""

import json
import sys

from groundstate import data
from groundstate.report import fingerprint, survey


def main(source):
    table = data.read(source).features
    if fingerprint(table) != {sha!r}:
        print("the table is not the one this report was made from", file=sys.stderr)
    found = survey(
        table, models={models!r}, test={test!r}, seed={seed}, cv={cv}, device={device!r}
    )
    seen = found.scores[{metric!r}]
    return {{
        "chosen": found.chosen,
        "tied": list(found.board.tied),
        "candidates": {{e.name: [e.score, e.low, e.high] for e in found.board if not e.failed}},
        "test": [seen.estimate, seen.low, seen.high],
    }}


if __name__ == "__main__":
    source = sys.argv[1] if len(sys.argv) > 1 else {source!r}
    print(json.dumps(main(source), indent=2))
'''


def reproduce_script(told: dict[str, Any], source: str) -> str:
    """The text of ``reproduce.py`` for the facts of a study.

    Parameters
    ----------
    told : the facts of the study
    source : path or name of the table
    """
    settings, task = told["settings"], told["task"]
    if task == "density":
        names = dict.fromkeys(name.partition("(")[0] for name in settings["models"])
        return _SURVEY.format(
            sha=told["table"]["sha256"], models=",".join(names), source=source, **_kept(settings)
        )
    dummy = "DummyClassifier" if task == "classification" else "DummyRegressor"
    device = settings["device"]
    argument = "" if device is None else f"device={device!r}"
    lines = [
        f"        {name!r}: gs.{name}({argument})," for name in settings["models"] if name != DUMMY
    ]
    lines.append(f"        {DUMMY!r}: {dummy}(),")
    return _TEMPLATE.format(
        dummy=dummy,
        seed=settings["seed"],
        target=told["table"]["target"],
        sha=told["table"]["sha256"],
        test=settings["test"],
        stratify=task == "classification",
        candidates="\n".join(lines),
        task=task,
        metric=settings["metric"],
        cv=settings["cv"],
        source=source,
    )


def _kept(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: settings[name] for name in ("test", "seed", "cv", "device", "metric")}


__all__ = ["reproduce_script"]
