"""The page and the folder of a study of rows that are no table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from groundstate.compute.rows import GraphNodes, Texts, to_device
from groundstate.errors import NotStorableError
from groundstate.report.drawn import drawn_rows
from groundstate.report.html import page
from groundstate.report.pictures import confusions, forest, learning
from groundstate.report.style import GROUPS, INK, LINE, SECOND
from groundstate.report.svg import Picture, inline_svg
from groundstate.store import RunDir
from groundstate.study.numbers import plain
from groundstate.study.rows.job import RowAssessment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LETTERS = 400  # of a text that is shown
_EXAMPLES = 8  # pictures of a kind that are shown
_SHOWN_NODES = 400
_SHOWN_EDGES = 8000
_MOVES = 60  # of a layout
_CLASSES = 12  # up to which the confusion matrix shows pictures

_SCRIPT = '''"""Gives the numbers of this report again: python reproduce.py [SOURCE]."""

import json
import sys

import groundstate

found = groundstate.study(sys.argv[1] if len(sys.argv) > 1 else {source!r}, {target!r}, **{settings!r})
print(json.dumps({{k: found.facts[k] for k in ("chosen", "candidates", "scores", "verdict")}}, indent=2))
'''


def write_rows(found: RowAssessment, run: RunDir, *, keep_model: bool = True) -> dict[str, Any]:
    """Model, report, numbers and script into an open run; returns the facts."""
    drawn = draw_rows(found)
    shown = {p.name: {"title": p.title, "caption": p.caption, "data": p.data} for p in drawn}
    facts = {**found.facts, "pictures": plain(shown), "examples": texts(found)}
    metric = facts["design"]["metric"]
    score = facts["scores"][metric]
    if keep_model:
        meta = {"target": found.source.target, "table": facts["data"]["hash"], "metric": metric,
                "test": [score["value"], score["lo"], score["hi"]]}  # fmt: skip
        try:
            run.save("model.gs", found.model, meta=meta)
        except NotStorableError as error:
            facts["skipped"].append(f"model.gs: {error}")
    run.write_json("report.json", facts)
    run.write_text("report.html", page(facts, drawn))
    source, *more = found.source.command or ("rows",)
    asked = {k: v for k, v in found.settings.items() if v is not None}
    if more:
        asked |= {more[0].lstrip("-"): more[1]}
    script = _SCRIPT.format(source=source, target=found.source.target, settings=asked)
    run.write_text("reproduce.py", script)
    return facts


def draw_rows(found: RowAssessment) -> list[Picture]:
    """The pictures of a study of rows, those of its kind of rows among them."""
    like: Any = found
    drawn = [forest(found.board)]
    if found.classes is not None:
        drawn.append(confusions(like))
    history = getattr(found.model, "history_", None)
    if history is not None and len(history.objective) > 2:
        drawn.append(learning(history.objective, history.solver))
    if found.drawn is not None:
        drawn += drawn_rows(found)
    elif found.source.kind == "image":
        drawn += images(found)
    if isinstance(found.source.rows, GraphNodes):
        drawn.append(nodes(found))
    return drawn


def texts(found: RowAssessment) -> list[dict[str, Any]]:
    """Texts that were judged: the surest mistakes; empty for rows of other kinds."""
    rows: Any = found.rows
    if found.classes is None or found.prediction.probability is None or not isinstance(rows, Texts):
        return []
    predicted = np.asarray(found.prediction.values)
    sure = found.prediction.probability[np.arange(len(predicted)), predicted]
    wrong = np.flatnonzero(predicted != found.truth)
    order = wrong[np.argsort(-sure[wrong], kind="stable")][:_EXAMPLES]
    words = rows[order].strings() if len(order) else []
    return [
        {"text": text[:_LETTERS], "truth": str(found.classes[found.truth[i]]),
         "predicted": str(found.classes[predicted[i]]), "probability": float(sure[i])}
        for i, text in zip(order.tolist(), words, strict=True)
    ]  # fmt: skip


def images(found: RowAssessment) -> list[Picture]:
    """Pictures that were judged: the surest mistakes, and where the model looked."""
    if found.classes is None or found.prediction.probability is None:
        return []
    p, predicted = found.prediction.probability, np.asarray(found.prediction.values)
    wrong = np.flatnonzero(predicted != found.truth)
    order = wrong[np.argsort(-p[wrong, predicted[wrong]], kind="stable")]
    right = np.flatnonzero(predicted == found.truth)
    unsure = right[np.argsort(p[right, predicted[right]], kind="stable")]
    made = [_taken_for(found)] if len(found.classes) <= _CLASSES else []
    for name, title, index, caption in (
        ("mistakes", "The surest mistakes", order, "Wrong answers with the highest probability"),
        ("unsure", "Right, but unsure", unsure, "Right answers with the lowest probability"),
    ):
        if len(index):
            made.append(_grid(found, name, title, index[:_EXAMPLES], caption))
    return made


def _taken_for(found: RowAssessment) -> Picture:
    """The confusion matrix with a picture in every cell: the one the model was surest of."""
    import torch

    assert found.classes is not None and found.prediction.probability is not None
    predicted = np.asarray(found.prediction.values)
    sure = found.prediction.probability[np.arange(len(predicted)), predicted]
    cells: dict[tuple[int, int], int] = {}
    for i in np.argsort(-sure, kind="stable").tolist():
        cells.setdefault((int(found.truth[i]), int(predicted[i])), i)
    index = np.array(list(cells.values()))
    shown = to_device(found.rows[index], torch.device("cpu"))
    pixels = np.asarray(shown).transpose(0, 2, 3, 1)
    pixels = pixels / 255 if pixels.max() > 1 else pixels
    k, names = len(found.classes), [str(c) for c in found.classes]
    counts = np.zeros((k, k), np.int64)
    np.add.at(counts, (found.truth, predicted), 1)

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        for (i, j), picture in zip(cells, pixels, strict=True):
            where = (j - 0.34, j + 0.34, i + 0.24, i - 0.44)
            ax.imshow(np.clip(picture.squeeze(), 0, 1), cmap="gray", extent=where, rasterized=True)
            colour = INK if i == j else SECOND
            ax.text(
                j, i + 0.37, str(counts[i, j]), ha="center", va="center", color=colour, fontsize=8
            )
        ax.set(xlim=(-0.5, k - 0.5), ylim=(k - 0.5, -0.5), xlabel="predicted", ylabel="true")
        turn = 90 if k * max(map(len, names)) > 60 else 0
        ax.set_xticks(range(k), names, rotation=turn)
        ax.set_yticks(range(k), names)
        ax.set_aspect("equal")

    side = min(8.0, 2.0 + 0.7 * k)
    caption = (
        "True classes by predicted ones, on rows no model had seen: how many, and the one the model "
        "was surest of."
    )
    svg = inline_svg("taken_for", (side, side), draw, wide=True)
    data = {"counts": counts.tolist(), "rows": found.judged[index].tolist()}
    return Picture("taken_for", "Which picture is taken for which", caption, svg, data, True)


def _grid(found: RowAssessment, name: str, title: str, index: Any, caption: str) -> Picture:
    import torch

    assert found.classes is not None and found.prediction.probability is not None
    shown = to_device(found.rows[np.asarray(index)], torch.device("cpu"))
    values = shown.float() if isinstance(shown, torch.Tensor) else shown
    pixels = np.asarray(values).transpose(0, 2, 3, 1)
    pixels = pixels / 255 if pixels.max() > 1 else pixels
    maps = found.model.explain(shown) if hasattr(found.model, "explain") else None
    predicted, classes = np.asarray(found.prediction.values)[index], found.classes

    def draw(figure: Figure) -> None:
        for i, ax in enumerate(figure.subplots(2, _EXAMPLES // 2).flat):
            ax.set_axis_off()
            if i >= len(pixels):
                continue
            ax.imshow(np.clip(pixels[i].squeeze(), 0, 1), cmap="gray", rasterized=True)
            if maps is not None:
                heat = np.asarray(maps[i], float).squeeze()
                ax.imshow(heat, cmap="inferno", alpha=0.35, rasterized=True,
                          extent=(-0.5, pixels.shape[2] - 0.5, pixels.shape[1] - 0.5, -0.5))  # fmt: skip
            p = found.prediction.probability[index[i], predicted[i]]
            truth = classes[found.truth[index[i]]]
            ax.set_title(f"{classes[predicted[i]]} {p:.0%}, is {truth}", fontsize=7, color=INK)

    more = "; bright where the answer was read off (Grad-CAM)" if maps is not None else ""
    data = {"rows": found.judged[index].tolist()}
    svg = inline_svg(name, (7.0, 3.6), draw, wide=True)
    return Picture(name, title, f"{caption}, of rows no model had seen{more}.", svg, data, True)


def nodes(found: RowAssessment) -> Picture:
    """The graph, its judged nodes coloured by prediction, mistakes circled."""
    rows: Any = found.source.rows
    ends = rows.graph.edges.values.cpu().numpy()
    n = len(rows.graph.nodes.values)
    keep = np.arange(n) if n <= _SHOWN_NODES else np.sort(rows.index.cpu().numpy()[:_SHOWN_NODES])
    inside = np.isin(ends, keep).all(1)
    place = layout(np.searchsorted(keep, ends[inside]), len(keep))
    where = rows.index.cpu().numpy()[found.judged]
    seen = np.isin(where, keep)
    at = place[np.searchsorted(keep, where[seen])]
    predicted, truth = np.asarray(found.prediction.values)[seen], found.truth[seen]

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        once = np.unique(np.sort(np.searchsorted(keep, ends[inside]), 1), axis=0)[:_SHOWN_EDGES]
        lines = np.full((len(once), 3, 2), np.nan)  # one path, lifted between its edges
        lines[:, :2] = place[once]
        ax.plot(*lines.reshape(-1, 2).T, color=LINE, linewidth=0.6, zorder=1)
        ax.plot(*place.T, "o", color=LINE, markersize=3, zorder=2)
        for k in np.unique(predicted):
            colour = GROUPS[int(k) % len(GROUPS)] if found.classes is not None else SECOND
            mine = at[predicted == k]
            ax.plot(*mine.T, "o", color=colour, markersize=5, zorder=3)
        if found.classes is not None:
            ax.plot(*at[predicted != truth].T, "o", markersize=9, markerfacecolor="none",
                    markeredgecolor=INK, zorder=4)  # fmt: skip
        ax.set_axis_off()

    part = "" if n <= _SHOWN_NODES else f"{_SHOWN_NODES} of {n:,} nodes; "
    caption = f"{part}nodes that judged are coloured by prediction, mistakes are circled."
    caption = caption[:1].upper() + caption[1:]
    return Picture(
        "graph", "The graph", caption, inline_svg("graph", (6.0, 4.6), draw, True), {}, True
    )


def layout(ends: Any, n: int) -> Any:
    r"""Places of nodes in the plane, ``(n, 2)``: the same every time.

    They start at the second and third eigenvectors of :math:`D^{-1/2}(A + I)D^{-1/2}`, which part the groups
    of a graph, and are moved by springs along edges while all nodes repel.
    """
    place = np.random.default_rng(0).normal(size=(n, 2))
    A = np.zeros((n, n))
    if len(ends):
        A[ends[:, 0], ends[:, 1]] = A[ends[:, 1], ends[:, 0]] = 1.0
        np.fill_diagonal(A, 0.0)
    degree = A.sum(1, keepdims=True)
    joined = np.flatnonzero(degree)
    if len(joined) > 3:
        root = np.sqrt(degree[joined] + 1)
        whole = (A[np.ix_(joined, joined)] + np.eye(len(joined))) / (root * root.T)
        slow = np.linalg.eigh(whole)[1][:, [-2, -3]] / root
        slow = (slow - slow.mean(0)) / np.maximum(slow.std(0), 1e-12)
        slow *= np.sign(
            slow[np.abs(slow).argmax(0), [0, 1]]
        )  # eigenvectors have no sign of their own
        place[joined] = slow + 0.05 * place[joined]
    for step in range(_MOVES):
        gap = place[:, None] - place  # (n, n, 2)
        far = np.square(gap).sum(-1) + 1e-4
        move = (gap * (4 / n / far - A * np.sqrt(far) / (1 + degree))[..., None]).sum(1)
        size = np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 1e-12)
        place = place + move / size * np.minimum(size, 0.2 * (1 - step / _MOVES))
    return place
