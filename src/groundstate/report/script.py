"""``reproduce.py``: the same report again, with the public API."""

from __future__ import annotations

from pprint import pformat
from typing import Any

_TEMPLATE = '''\
"""Gives the numbers of this report again: python reproduce.py [TABLE]."""

import json
import sys

from groundstate import data
from groundstate.report import fingerprint, report_facts, study

SETTINGS = {settings}


def main(source):
    # the table; if its content has changed, so will the numbers
    table = data.read(source).with_target({target!r})

    # audit, split, compare, tune, refit, one look at the rows that judge
    found = study(table, **SETTINGS)
    if fingerprint(found.table) != {sha!r}:
        print("the table is not the one this report was made from", file=sys.stderr)
    told = report_facts(found)
    return {{name: told[name] for name in ("chosen", "candidates", "scores", "verdict")}}


if __name__ == "__main__":
    source = sys.argv[1] if len(sys.argv) > 1 else {source!r}
    print(json.dumps(main(source), indent=2))
'''

_SURVEY = '''\
"""Gives the numbers of this report again: python reproduce.py [TABLE]."""

import json
import sys

from groundstate import data
from groundstate.report import fingerprint, survey, survey_facts


def main(source):
    table = data.read(source).features
    if fingerprint(table) != {sha!r}:
        print("the table is not the one this report was made from", file=sys.stderr)
    found = survey(
        table, models={models!r}, test={test!r}, seed={seed}, cv={cv}, device={device!r}
    )
    told = survey_facts(found)
    return {{name: told[name] for name in ("chosen", "candidates", "scores", "verdict")}}


if __name__ == "__main__":
    source = sys.argv[1] if len(sys.argv) > 1 else {source!r}
    print(json.dumps(main(source), indent=2))
'''


def reproduce_script(told: dict[str, Any], settings: Any, source: str) -> str:
    """The text of ``reproduce.py``.

    Parameters
    ----------
    told : the facts of an assessment or survey
    settings : its `Settings`
    source : path or name of the table
    """
    if told["task"] == "density":
        names = dict.fromkeys(name.partition("(")[0] for name in settings.models)
        return _SURVEY.format(
            sha=told["data"]["hash"], models=",".join(names), source=source, test=settings.test,
            seed=settings.seed, cv=settings.folds, device=settings.device,
        )  # fmt: skip
    asked: dict[str, Any] = {
        "models": settings.spec,
        "metric": settings.metric,
        "random_state": settings.seed,
        "tune": settings.tune,
    }
    spelled = {"weights": "sample_weight"}
    for name in ("design", "test", "folds", "repeats", "level", "seeds", "bootstrap", "budget",
                 "groups", "time", "weights", "positive", "cost_fp", "cost_fn", "device",
                 "params"):  # fmt: skip
        value = getattr(settings, name)
        if value != getattr(type(settings)(), name):
            asked[spelled.get(name, name)] = value
    return _TEMPLATE.format(
        settings=pformat(asked, sort_dicts=False), target=told["data"]["target"],
        sha=told["data"]["hash"], source=source,
    )  # fmt: skip


__all__ = ["reproduce_script"]
