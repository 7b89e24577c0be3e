"""The shape of ``report.json``, as a JSON schema, and a check against it."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from groundstate.errors import DataError

_TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
}


def report_schema() -> dict[str, Any]:
    """The JSON schema of a report (draft 2020-12).

    >>> report_schema()["properties"]["groundstate_report"]
    {'enum': [2]}
    """
    text = files("groundstate.report").joinpath("schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def validate(facts: Any) -> None:
    """Raise a `DataError` that names the place where a report departs from the schema.

    >>> validate({"verdict": []})
    Traceback (most recent call last):
    ...
    groundstate.errors.DataError: report lacks groundstate_report
    """
    _check(facts, report_schema(), "report")


def _check(value: Any, rule: dict[str, Any], where: str) -> None:
    if "enum" in rule and value not in rule["enum"]:
        raise DataError(f"{where} is one of {rule['enum']}, got {value!r}")
    if "type" in rule:
        kinds = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
        if not any(_is(value, kind) for kind in kinds):
            raise DataError(f"{where} is {' or '.join(kinds)}, got {type(value).__name__}")
    if isinstance(value, dict):
        for name in rule.get("required", ()):
            if name not in value:
                raise DataError(f"{where} lacks {name}")
        known, other = rule.get("properties", {}), rule.get("additionalProperties", {})
        for name, item in value.items():
            _check(item, known.get(name, other), f"{where}.{name}")
    if isinstance(value, list):
        if not rule.get("minItems", 0) <= len(value) <= rule.get("maxItems", len(value)):
            raise DataError(f"{where} has {len(value)} entries")
        for i, item in enumerate(value):
            _check(item, rule.get("items", {}), f"{where}.{i}")


def _is(value: Any, kind: str) -> bool:
    if kind in ("number", "integer"):
        real = isinstance(value, int | float) and not isinstance(value, bool)
        return real and (kind == "number" or isinstance(value, int))
    return isinstance(value, _TYPES[kind])
