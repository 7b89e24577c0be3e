"""``groundstate tune``."""

from __future__ import annotations

import json as jsonlib
from typing import Any

from groundstate.cli.screen import Screen
from groundstate.data import read
from groundstate.store import write_bytes
from groundstate.study.job import seconds
from groundstate.study.numbers import show
from groundstate.study.tune_table import tune_table


def tune(
    table: str,
    target: str | None,
    model: str,
    trials: int,
    storage: str | None,
    out: str | None,
    budget: str | None,
    json: bool,
    no_progress: bool,
    **options: Any,
) -> None:
    """Search settings and write the best ones."""
    screen = Screen(json, not no_progress)
    source = read(table) if target is None else read(table).with_target(target)
    with screen.stages() as progress:
        progress(f"trying {trials} settings of {model}")
        found = tune_table(
            source, model=model, trials=trials, storage=storage,
            seconds=seconds(budget), **options,
        )  # fmt: skip
    if out is not None:
        write_bytes(out, (jsonlib.dumps(found, indent=2) + "\n").encode())
    screen.data(found)
    settings = ", ".join(f"{name}={_short(value)}" for name, value in found["params"].items())
    done = sum(trial["score"] is not None for trial in found["trials"])
    lines = [
        f"{found['model']}: best of {done} settings: {settings}",
        f"validation {found['metric']}: {show(abs(found['score']), found['metric'])}; as the best "
        "of several it is a little too good, assess says how good on other rows",
    ]
    if found["importance"]:
        shares = [
            f"{k.removeprefix('estimator__')} {v:.0%}" for k, v in found["importance"].items()
        ]
        lines.append(f"what matters: {', '.join(shares)}")
    if out is not None:
        lines.append(f"settings: {out} (groundstate assess {table} --params {out})")
    screen.show("\n".join(lines))


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
