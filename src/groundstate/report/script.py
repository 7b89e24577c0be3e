"""``reproduce.py``: the same report again, with the public API."""

from __future__ import annotations

import os
from pprint import pformat
from typing import Any

_TEMPLATE = '''\
"""Gives the numbers of this report again: python reproduce.py [TABLE]."""

import json
import sys

import groundstate

SETTINGS = {settings}


def study(source):
    # audit, split, compare, tune, refit, one look at the held-out rows
    return groundstate.study(source, {target!r}, **SETTINGS)


def main(source):
    found = study(source)  # found.predict(rows), found.report(folder)
    if found.facts["data"]["hash"] != {sha!r}:
        print("the table is not the one this report was made from", file=sys.stderr)
    return {{name: found.facts[name] for name in ("chosen", "candidates", "scores", "verdict")}}


if __name__ == "__main__":
    source = sys.argv[1] if len(sys.argv) > 1 else {source!r}
    print(json.dumps(main(source), indent=2))
'''


def reproduce_script(facts: dict[str, Any], settings: Any, source: str) -> str:
    """The text of ``reproduce.py``.

    Parameters
    ----------
    facts : the facts of an assessment or survey
    settings : its `Settings`
    source : path or name of the table
    """
    target, asked = facts["data"]["target"], {"model": settings.spec}
    if facts["task"] == "density":
        target = "none"
    else:
        if settings.chosen_by in ("", settings.metric):
            asked["metric"] = settings.metric
        asked["tune"] = settings.tune
    asked |= {"seed": settings.seed, "ledger": "none"}
    for name in ("design", "test", "folds", "repeats", "level", "seeds", "bootstrap", "budget",
                 "groups", "time", "weights", "positive", "cost_fp", "cost_fn", "device",
                 "params", "quick", "thorough"):  # fmt: skip
        value = getattr(settings, name)
        if value != getattr(type(settings)(), name):
            asked[name] = (
                os.path.abspath(value) if name == "test" and isinstance(value, str) else value
            )
    if settings.without:
        asked["without"] = ",".join(settings.without)
    if settings.quick and settings.thorough:
        asked["budget"] = "none"
        del asked["thorough"]
    return _TEMPLATE.format(
        settings=pformat(asked, sort_dicts=False, width=100), target=target, sha=facts["data"]["hash"],
        source=source,
    )  # fmt: skip
