"""Trees as words: an indented outline that can be read back, and one rule per leaf."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import DataError, Unsupported
from groundstate.models.trees.view import TreeView


def view_of(model: Any, tree: int = 0) -> TreeView:
    """One tree of a fitted model: a decision tree, a forest or a booster."""
    nodes = getattr(getattr(model, "energy_", None), "nodes", None)
    if nodes is None:
        raise Unsupported(
            f"{type(model).__name__} has no fitted trees to show; fit a tree, a forest or a "
            "histogram booster first"
        )
    if not 0 <= tree < nodes.n_trees:
        raise DataError(f"tree={tree}, but {type(model).__name__} has {nodes.n_trees} trees")
    classes = hasattr(model, "classes_") and nodes.value.shape[1] == len(model.classes_)
    return TreeView.of(nodes.tree(tree), model.n_features_in_, classes)


def question(model: Any, view: TreeView, node: int, names: Sequence[str] | None = None) -> str:
    """What a node asks, in words: the rows for which it holds go left."""
    j = int(view.feature[node])
    name = _names(model, names)[j]
    tail = " or missing" if view.missing_go_to_left[node] else ""
    if node in view.categories:
        levels = getattr(model, "_levels", {}).get(j)
        chosen = np.flatnonzero(view.categories[node])
        shown = [str(c) if levels is None else str(levels[c]) for c in chosen]
        return f"{name} in {{{', '.join(shown)}}}{tail}"
    if math.isinf(view.threshold[node]):
        return f"{name} is missing" if view.missing_go_to_left[node] else f"{name} is known"
    return f"{name} <= {float(view.threshold[node])!r}{tail}"


def _names(model: Any, names: Sequence[str] | None) -> list[str]:
    if names is not None:
        return [str(name) for name in names]
    known = getattr(model, "feature_names_in_", None)
    if known is not None:
        return [str(name) for name in known]
    return [f"x{j}" for j in range(model.n_features_in_)]


def answer(model: Any, view: TreeView, node: int) -> str:
    """What a leaf says: the class of most weight, or the value."""
    value = view.value[node]
    if hasattr(model, "classes_") and value.shape == (1, len(model.classes_)):
        shares = ", ".join(repr(float(p)) for p in value[0])
        return f"class {model.classes_[int(value[0].argmax())]} [{shares}]"
    return f"value [{', '.join(repr(float(v)) for v in value.ravel())}]"


def export_text(model: Any, *, tree: int = 0, feature_names: Sequence[str] | None = None) -> str:
    """A tree as an indented outline; `read_text` predicts from it.

    Examples
    --------
    >>> from groundstate import DecisionTreeRegressor
    >>> model = DecisionTreeRegressor(max_depth=1).fit([[0], [1], [3]], [1.0, 1.0, 4.0])
    >>> print(export_text(model))
    |--- x0 <= 2.0 or missing
    |   |--- value [1.0]
    |--- else
    |   |--- value [4.0]
    """
    view = view_of(model, tree)
    lines: list[str] = []

    def write(node: int, depth: int) -> None:
        edge = "|   " * depth + "|--- "
        if view.children_left[node] < 0:
            lines.append(edge + answer(model, view, node))
            return
        lines.append(edge + question(model, view, node, feature_names))
        write(int(view.children_left[node]), depth + 1)
        lines.append(edge + "else")
        write(int(view.children_right[node]), depth + 1)

    write(0, 0)
    return "\n".join(lines)


def rules(model: Any, *, tree: int = 0, feature_names: Sequence[str] | None = None) -> list[str]:
    """One sentence per leaf: the questions on the way and what the leaf says.

    Examples
    --------
    >>> from groundstate import DecisionTreeRegressor
    >>> model = DecisionTreeRegressor(max_depth=1).fit([[0], [1], [3]], [1.0, 1.0, 4.0])
    >>> rules(model)[1]
    'if not (x0 <= 2.0 or missing) then value [4.0] (1 row)'
    """
    view = view_of(model, tree)
    out: list[str] = []

    def walk(node: int, path: list[str]) -> None:
        if view.children_left[node] < 0:
            n = view.weighted_n_node_samples[node]
            way = " and ".join(path) or "always"
            rows = f"{n:g} row{'s' if n != 1 else ''}"
            out.append(f"if {way} then {answer(model, view, node)} ({rows})")
            return
        asked = question(model, view, node, feature_names)
        walk(int(view.children_left[node]), [*path, asked])
        walk(int(view.children_right[node]), [*path, f"not ({asked})"])

    walk(0, [])
    return out


@dataclass
class _Line:
    column: int = -1
    threshold: float = math.nan
    levels: frozenset[str] | None = None
    missing: bool = False
    kind: str = "value"
    value: NDArray[np.float64] | None = None
    left: _Line | None = None
    right: _Line | None = None


_ASK = re.compile(
    r"(?P<name>.+?) (?:<= (?P<t>\S+)|in \{(?P<set>.*)\}|is (?P<is>missing|known))"
    r"(?P<or> or missing)?$"
)


def read_text(text: str, feature_names: Sequence[str]) -> Any:
    """A function from rows ``(n, d)`` to leaf values ``(n, k)``, read from `export_text`.

    Categories are compared as text.
    """
    lines = [(line.count("|   "), line.split("|--- ", 1)[1]) for line in text.splitlines()]
    names = list(feature_names)

    def read(at: int) -> tuple[_Line, int]:
        depth, words = lines[at]
        if words.startswith(("class ", "value ")):
            numbers = words[words.index("[") + 1 : words.rindex("]")]
            return _Line(value=np.array([float(v) for v in numbers.split(", ")])), at + 1
        found = _ASK.match(words)
        if found is None:
            raise DataError(f"line {at + 1} of the tree is not a question: {words!r}")
        line = _Line(names.index(found["name"]), missing=bool(found["or"]))
        if found["t"]:
            line.threshold = float(found["t"])
        elif found["set"] is not None:
            line.levels = frozenset(found["set"].split(", "))
        else:
            line.threshold, line.missing = math.inf, found["is"] == "missing"
            line.threshold = -math.inf if line.missing else math.inf
        line.left, at = read(at + 1)
        if lines[at] != (depth, "else"):
            raise DataError(f"line {at + 1} of the tree should be 'else', found {lines[at][1]!r}")
        line.right, at = read(at + 1)
        return line, at

    root, _ = read(0)

    def predict(X: Any) -> NDArray[np.float64]:
        return np.stack([_walk(root, row) for row in np.asarray(X)])

    return predict


def _walk(line: _Line, row: NDArray[Any]) -> NDArray[np.float64]:
    while line.value is None:
        v = row[line.column]
        gone = v is None or v != v
        if gone:
            go = line.missing
        elif line.levels is not None:
            go = str(v) in line.levels
        else:
            go = float(v) <= line.threshold
        step = line.left if go else line.right
        assert step is not None
        line = step
    return line.value
