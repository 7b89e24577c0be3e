"""The main job: assess a table with tuning, as the command line does, and take it up again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from groundstate.data import read
from groundstate.study.assess import Assessment, assess
from groundstate.study.facts import fingerprint
from groundstate.study.ledger_entry import ledger_of
from groundstate.study.tuning import Search

_NO_MATTER = ("progress", "n_jobs", "ledger")  # they change no trial: a job goes on with others


def study(
    source: Any,
    target: str | int | None = None,
    *,
    models: Any = "auto",
    tune: int = 0,
    resume: str | Path | None = None,
    keep: bool = False,
    **options: Any,
) -> Assessment:
    """Which model predicts the target best, and how good it is on rows it never saw.

    Parameters
    ----------
    source
        A `Table` or anything `data.read` takes.
    target
        Column to predict; the table's own by default.
    models
        As ``model`` of :func:`groundstate.study.assess`.
    tune
        Settings of the best candidate to try.
    resume
        Start of the names of files that keep the search; a job that was stopped goes on from
        them, one that ends removes them.
    keep
        Leave those files, for the caller to :func:`forget` once the report is written.
    **options
        Of :func:`groundstate.study.assess`.

    Examples
    --------
    >>> found = study("iris", models="LogisticRegression", repeats=1, seeds=0, bootstrap=0)
    >>> found.chosen, len(found.truth), found.scores["accuracy"].low > 0.85
    ('LogisticRegression', 150, True)
    """
    table = read(source) if target is None else read(source).with_target(target)
    options["ledger"] = ledger_of(source, options.get("ledger", "auto"))
    if not tune:
        return assess(models, table, **options)
    prefix = None
    if resume is not None:  # another table or other settings begin anew
        same = {k: v for k, v in options.items() if k not in _NO_MATTER}
        said = json.dumps([str(models), tune, same], default=str, sort_keys=True)
        mark = hashlib.sha256((fingerprint(table) + said).encode()).hexdigest()[:12]
        prefix = f"{resume}{mark}-"
    tuner = Search(tune, prefix, options.get("n_jobs") or 1)
    found = assess(models, table, tuner=tuner, **options)
    if not keep:
        forget(prefix)
    return found


def forget(prefix: str | Path | None) -> None:
    """Remove the files of a search that has ended."""
    if prefix is not None:
        start = Path(prefix)
        for path in start.parent.glob(f"{start.name}*.db*"):
            path.unlink(missing_ok=True)


__all__ = ["forget", "study"]
