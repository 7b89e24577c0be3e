"""Sections of a table without a target: its groups, its odd rows, its map, its missing cells."""

from __future__ import annotations

from typing import Any

from groundstate.report.cells import at, between, table_of, words_of
from groundstate.study.numbers import show
from groundstate.study.unlabelled.survey import missing_words, reason_words


def groups(facts: dict[str, Any]) -> str:
    """Groups by size, how stable they are, and the columns that set them apart."""
    grouping = facts.get("grouping") or {}
    if len(grouping.get("each", [])) < 2:
        return ""
    rows = []
    for i, group in enumerate(grouping["each"]):
        key = f"grouping.each.{i}"
        marks = "; ".join(_mark(mark) for mark in group["marks"])
        stable: Any = ""
        if group["stability"] is not None:
            stable = at(facts, f"{key}.stability", "accuracy")
        rows.append((str(group["group"]), f"{group['rows']:,}", stable, marks or "nothing notable"))
    words = (
        f"Groups by {grouping['model']}. Stability: the part of a group that stays together when the "
        "model is fitted again to half of the rows (10 times; mean Jaccard index with the best "
        "match). What sets a group apart: the columns with the largest standardised differences "
        "from all other rows."
    )
    header = ("group", "rows", "stability", "what sets it apart")
    return table_of(header, rows, (1, 2)) + "\n" + words_of(words)


def _mark(mark: dict[str, Any]) -> str:
    if "level" in mark:
        here, there = (show(mark[name], "accuracy") for name in ("here", "elsewhere"))
        return f"{mark['column']} is {mark['level']} in {here} (elsewhere {there})"
    here, there = (show(mark[name]) for name in ("here", "elsewhere"))
    return f"{mark['column']} {here} on average (elsewhere {there})"


def outliers(facts: dict[str, Any]) -> str:
    """Rows of the highest energy, and the cells that the rest of the row does not expect."""
    rows = []
    for i, row in enumerate(facts.get("outliers", [])):
        why = [missing_words(row["missing"])] if row["missing"] else []
        why += [reason_words(reason) for reason in row["reasons"]]
        words = "; ".join(why) or "no single cell: their mix"
        rows.append((f"{row['row']:,}", at(facts, f"outliers.{i}.energy"), words))
    if not rows:
        return ""
    words = (
        "The energy is minus the log density of a row, in nats as the surprise above, which is its mean "
        "over held-out rows: high is rare. A cell is named when it lies more than two standard "
        "deviations from what the rest of its row makes expected (of a category: has a probability "
        "below 14%), or is missing where few rows miss it; the range is the central 90% of draws given "
        "that rest. Where cells explain each other, as those of a column and its copy do, cells that are "
        "rarer still in their own columns are named, with what is usual there."
    )
    return table_of(("row", "energy", "why"), rows, (0, 1)) + "\n" + words_of(words)


def filling(facts: dict[str, Any]) -> str:
    """How well missing cells can be filled, column by column."""
    found = facts.get("filling") or {"columns": [], "missing": 0}
    rows = []
    for i, column in enumerate(found["columns"]):
        key = f"filling.columns.{i}"
        covered: Any = "" if column["covered"] is None else at(facts, f"{key}.covered", "accuracy")
        rows.append((column["column"], at(facts, f"{key}.skill", "accuracy"),
                     between(facts, key, "accuracy", "lo", "hi"), covered, f"{column['n']:,}"))  # fmt: skip
    if not rows:
        return ""
    cells = found["missing"]
    where = f" The {cells:,} missing cells are filled in filled.csv." if cells else ""
    words = (
        "Each known cell of the test rows was hidden and filled from the rest of its row. Skill is "
        "the share of the loss of a constant answer that is saved (squared error of numbers, errors "
        f"of categories): 0 is no better than the mean or the most frequent level.{where}"
    )
    header = ("column", "skill", "95% interval", "in the 90% range", "cells hidden")
    return table_of(header, rows, (1, 3, 4)) + "\n" + words_of(words)


def maps(facts: dict[str, Any]) -> str:
    """Which map is drawn, and how far it can be trusted."""
    found = facts.get("map")
    if not found or len(found["trust"]) < 2:
        return ""
    best = sorted(found["trust"], key=lambda name: -found["trust"][name])
    rows = [(name, at(facts, f"map.trust.{name}", "accuracy")) for name in best]
    words = (
        f"Trust: how few of the ten nearest rows on a map are not near in the table "
        f"(trustworthiness); {found['name']} is drawn, of {found['rows']:,} rows."
    )
    return table_of(("map", "trust"), rows, (1,)) + "\n" + words_of(words)
