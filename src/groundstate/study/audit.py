"""The audit inside an assessment: of the table before it is split, of the sides after the look."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.data import Finding, Table
from groundstate.data import audit as audit_table
from groundstate.data.messages import count
from groundstate.evaluate.audit.leaks import (
    EQUAL_BY_CHANCE,
    LEAKS,
    between,
    equal_by_chance,
    of_table,
)
from groundstate.evaluate.rows import columns
from groundstate.study.design import Design, twins
from groundstate.study.question import Question

_ORDER = {"serious": 0, "warning": 1, "info": 2}


def audit_before(question: Question) -> tuple[Finding, ...]:
    """What is wrong with the table itself, most serious first."""
    found = list(audit_table(question.table))
    blamed = {name for f in found if f.code == "leak" for name in f.columns}
    known = {f.code for f in found}
    target = str(question.table.target)
    usable = _usable(question, time=True).frame
    for finding in of_table(usable, question.y, question.time, target):
        if finding.code == "leak" or len(finding.columns) == 1:
            new = not blamed.intersection(finding.columns)
        else:
            new = finding.code not in known
        found += [finding] if new else []
    return ordered(found)


def audit_after(question: Question, design: Design, key: Key) -> tuple[Finding, ...]:
    """What is wrong between the rows that learned and the rows that judge.

    Called after the one look, since it reads the rows that judge. Folds are drawn at random, so
    that only rows and groups on both sides can be wrong with them; rows that were given or are the
    latest may also come from another distribution.
    """
    if design.kind == "nested":
        return tuple(_folds(question, design))
    train, test = design.split
    given = isinstance(question.test, np.ndarray)
    usable = _usable(question).frame
    frame = usable if given else question.features.frame  # new rows have new identifiers
    return tuple(
        between(frame, question.y, train, test, question.groups, question.time, key, usable=usable)
    )


def ordered(findings: list[Finding] | tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Leaks first, then by severity."""
    return tuple(sorted(findings, key=lambda f: (f.code not in LEAKS, _ORDER[f.severity])))


def _usable(question: Question, time: bool = False) -> Table:
    """Features without identifiers and constants, and without the column of dates to split by."""
    table = question.features
    left = set() if time else {question.settings.time}
    names = [
        c.name for c in table.schema if c.kind not in ("id", "constant") and c.name not in left
    ]
    return table.select(names) if names else table


def _folds(question: Question, design: Design) -> Iterator[Finding]:
    sides = design.sides[: design.n_folds]
    words = row_hash(*columns(question.features))
    shared = sum(int(np.isin(words[test], words[train]).sum()) for train, test in sides)
    if shared:
        y = question.y
        natural = twins(words) > 0.5 or all(equal_by_chance(words, y, a, b) for a, b in sides)
        why = EQUAL_BY_CHANCE if natural else "drop the copies, or name their group"
        yield Finding(
            "repeated_rows" if natural else "shared_rows",
            "info" if natural else "serious",
            f"{count(shared, 'judged row')} equal to a training row in all features; {why}",
            float(shared),
        )
    if question.groups is not None:
        groups: NDArray[np.generic] = question.groups
        both = {g for a, b in sides for g in np.intersect1d(groups[a], groups[b]).tolist()}
        if both:
            yield Finding(
                "shared_groups", "serious",
                f"{count(len(both), 'group')} on both sides of a fold", float(len(both)),
            )  # fmt: skip
