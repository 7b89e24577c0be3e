"""The pictures of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from groundstate.data import Table
from groundstate.report import evidence, why
from groundstate.report.style import ACCENT, GROUPS, INK, LINE, MUTED, SECOND
from groundstate.report.svg import Picture, inline_svg
from groundstate.study.candidates import inner_of
from groundstate.study.facts import confusion, energies
from groundstate.study.numbers import is_share, label, title
from groundstate.study.race.names import FIRST
from groundstate.study.unlabelled.maps import LINEAR

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from groundstate.evaluate import Standings
    from groundstate.study import Assessment
    from groundstate.study.unlabelled.survey import Survey

_MAP_BINS = 48
_MAX_CLASSES = 25
_MAX_POINTS = 2000


def draw_all(found: Assessment, facts: dict[str, Any]) -> list[Picture]:
    """Every picture that this assessment allows, in reading order."""
    drawn = [forest(found.board)]
    if found.classes is None:
        drawn.append(predicted(found))
    else:
        drawn.append(confusions(found, found.design.repeats))
    if found.stage == FIRST:  # others would keep the next answer waiting
        return drawn
    if found.classes is None:
        drawn.append(evidence.residuals(found.truth, found.prediction.values))
    else:
        drawn += evidence.of_probabilities(found, facts)
    drawn += evidence.of_facts(facts)
    gap = energies(found)
    if gap is not None and np.isfinite(gap).sum() > 1:
        drawn.append(energy_picture(gap[np.isfinite(gap)], found.task))
    history = getattr(inner_of(found.model), "history_", None)
    if history is not None and len(history.objective) > 2:
        drawn.append(learning(history.objective, history.solver))
    if facts["weights"]:
        drawn.append(weight_picture(facts["weights"]))
    drawn += why.draw(facts)
    holes = missing_map(found.table)
    return [*drawn, holes] if holes is not None else drawn


def draw_survey(found: Survey) -> list[Picture]:
    """The pictures of a table without a target."""
    drawn = [forest(found.board), scatter(found), energy_picture(found.energies, "density")]
    holes = missing_map(found.table)
    return [*drawn, holes] if holes is not None else drawn


def scatter(found: Survey) -> Picture:
    """The map of the rows, coloured by group, the odd ones circled."""
    shown = found.map
    groups = (
        np.zeros(len(shown.rows), np.int64) if found.groups is None else found.groups[shown.rows]
    )
    odd = np.flatnonzero(np.isin(shown.rows, [row["row"] - 1 for row in found.outliers]))
    linear = shown.name == LINEAR

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for group in np.unique(groups):
            mine = shown.at[groups == group]
            look: Any = {"color": GROUPS[group % len(GROUPS)], "marker": "os^Dvp*X"[group % 8]}
            axes.plot(*mine.T, linestyle="", markersize=4, alpha=0.6, markeredgewidth=0, **look)
        axes.plot(*shown.at[odd].T, "o", markersize=10, markerfacecolor="none", markeredgecolor=INK)
        if linear:
            axes.set_xlabel("widest direction")
            axes.set_ylabel("second widest")
        else:  # such a map has neither units nor directions
            axes.set_xticks([])
            axes.set_yticks([])

    how = (
        "seen along the two directions in which they differ most"
        if linear
        else f"by {shown.name}, which keeps near rows near; distances between far groups mean little"
    )
    trust = f"{shown.trust[shown.name]:.0%}"
    caption = (
        f"The rows {how}; signs are groups, and the rows of highest energy, the least typical ones, "
        f"are circled. Trust in its neighbourhoods: {trust}."
    )
    data = {"x": shown.at[:, 0], "y": shown.at[:, 1], "group": groups}
    return Picture("rows", "A map of the rows", caption, inline_svg("rows", (7.0, 4.4), draw), data)


def forest(board: Standings) -> Picture:
    """Scores with intervals, one line per candidate, the best on top."""
    entries = [entry for entry in board if not entry.failed][::-1]
    seen = any(entry.test_score is not None for entry in entries)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.grid(axis="x")
        for at, entry in enumerate(entries):
            colour = ACCENT if entry.tied_with_best else MUTED
            axes.plot([entry.low, entry.high], [at, at], color=colour, solid_capstyle="round")
            axes.plot(entry.score, at, "o", color=colour, markersize=6)
            if entry.test_score is not None:
                span = np.array([entry.test_low, entry.test_high], np.float64)
                axes.plot(span, [at - 0.22] * 2, color=SECOND, linewidth=1.2)
                axes.plot(entry.test_score, at - 0.22, "D", color=SECOND, markersize=4.5)
            tie = "≈ " if entry.tied_with_best and at < len(entries) - 1 else ""
            # above its line, where a long name takes no room from the scale
            axes.annotate(tie + entry.name, (0, at), (0, 5), xycoords=("axes fraction", "data"),
                          textcoords="offset points", va="bottom", fontsize=9)  # fmt: skip
        axes.set_yticks([])
        axes.set_ylim(-0.6, len(entries) - 0.25)
        if is_share(board.metric):
            axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
        axes.locator_params(axis="x", nbins=6)
        axes.set_xlabel(f"{label(board.metric)}: {title(board.metric)}")
        axes.spines["left"].set_visible(False)

    caption = (
        f"Dots are scores from cross-validation with their {board.level:.0%} intervals"
        + ("; diamonds are scores on held-out rows" if seen else "")
        + ". Where intervals overlap a lot, the order may be luck."
    )
    height = 1.0 + 0.5 * len(entries)
    data = {"names": [e.name for e in board], "score": [e.score for e in board]}
    return Picture("scores", "Candidates", caption, inline_svg("scores", (5.0, height), draw), data)


def confusions(found: Assessment, repeats: int = 1) -> Picture:
    """True classes by predicted classes on the test rows, recall and precision at the margins."""
    counts = confusion(found)
    classes = [] if found.classes is None else found.classes.tolist()
    k = len(classes)
    labels = [str(name) if len(str(name)) <= 14 else f"{str(name)[:13]}…" for name in classes]
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)  # (K, K)
    few = k <= _MAX_CLASSES

    def draw(figure: Figure) -> None:
        from matplotlib.patches import Rectangle

        axes = figure.subplots()
        for i, j in zip(*np.nonzero(counts), strict=True):
            colour = ACCENT if i == j else SECOND
            shade = min(1.0, 0.12 + 0.6 * share[i, j])
            box = Rectangle((j - 0.5, i - 0.5), 1, 1, color=colour, alpha=shade, lw=0)
            axes.add_patch(box)
        end = k - 0.5
        if few:
            for i, j in np.ndindex(*counts.shape):
                if counts[i, j] or i == j:
                    axes.text(j, i, f"{counts[i, j]}", ha="center", va="center", color=INK)
            _margins(axes, counts)
            end = k + 0.5
        axes.set_xlim(-0.5, end)
        axes.set_ylim(end, -0.5)
        step = 1 if few else -(-k // 25)
        turn = 90 if k * max(map(len, (*labels, "found"))) > 50 else 0
        named, more = range(0, k, step), (k,) if few else ()
        axes.set_xticks([*named, *more], [*labels[::step], *("found" for _ in more)], rotation=turn)
        axes.set_yticks([*named, *more], [*labels[::step], *("right" for _ in more)])
        axes.set_xlabel("predicted")
        axes.set_ylabel("true")
        axes.set_aspect("equal")
        axes.tick_params(length=0, labelsize=10 if few else 7)
        axes.spines[:].set_visible(False)

    side = 2.2 + 0.42 * (k + 1) if few else 7.5
    first = " of the first repeat" if repeats > 1 else ""
    caption = (
        "Each row is a true class, each column a prediction; the diagonal is right. "
        + (
            f"Numbers are held-out rows{first}. "
            if few
            else "Darker is a larger share of the class. "
        )
        + (
            "At the right the share of a class that is found (recall), below the share that is "
            "right among rows called it (precision)."
            if few
            else ""
        )
    ).strip()
    wide = k > 8
    size = (max(4.6, side + 0.6), side)
    data = {"classes": [str(name) for name in classes], "counts": counts}
    drawn = inline_svg("confusion", size, draw, wide)
    return Picture("confusion", "Right and wrong", caption, drawn, data, wide)


def _margins(axes: Axes, counts: NDArray[np.int64]) -> None:
    """Recall right of the table and precision below it."""
    k = len(counts)
    hit, true, predicted = np.diag(counts), counts.sum(1), counts.sum(0)
    look: Any = {"ha": "center", "va": "center", "color": MUTED, "fontsize": 9}
    for i in range(k):
        axes.text(k, i, f"{hit[i] / true[i]:.0%}" if true[i] else "–", **look)
        axes.text(i, k, f"{hit[i] / predicted[i]:.0%}" if predicted[i] else "–", **look)


def predicted(found: Assessment) -> Picture:
    """Predicted against true values on the test rows."""
    step = -(-len(found.truth) // _MAX_POINTS)
    y, predicted = found.truth[::step], found.prediction.values[::step]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        low, high = float(min(y.min(), predicted.min())), float(max(y.max(), predicted.max()))
        axes.plot([low, high], [low, high], color=LINE, linewidth=1.2)
        axes.plot(y, predicted, "o", color=ACCENT, alpha=0.5, markersize=4, markeredgewidth=0)
        axes.set_xlabel(f"true {found.table.target}")
        axes.set_ylabel("predicted")
        axes.grid(alpha=0.6)

    caption = "Each point is a held-out row; on the line the prediction is exact."
    return Picture(
        "predicted",
        "Predicted and true",
        caption,
        inline_svg("predicted", (6.5, 4.2), draw),
        {"true": y, "predicted": predicted},
    )


def energy_picture(values: NDArray[np.float64], task: str) -> Picture:
    """How sure the model is, as energies of the test rows."""
    if task == "classification":
        caption = (
            "Energy of the best wrong answer minus energy of the right one, for each test row: "
            "right of zero the model answers right, and the further the surer."
        )
        axis = "energy gap"
    elif task == "density":
        caption = "Free energy of every row under the chosen density: far to the right is unusual."
        axis = "energy"
    else:
        caption = "Energy e(x, y) of each test row with its true value: low is a good prediction."
        axis = "energy"
    # a few far rows must not squeeze the rest into one bar
    low, high = np.quantile(values, [0.005, 0.995])
    shown = np.clip(values, low, high)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        _histogram(axes, shown, task)
        axes.set_xlabel(axis)
        axes.set_ylabel("rows" if task == "density" else "test rows")

    data = {"quantiles": np.quantile(values, np.linspace(0, 1, 21))}
    return Picture("energy", "Energies", caption, inline_svg("energy", (7.5, 2.8), draw), data)


def _histogram(axes: Axes, values: NDArray[np.float64], task: str) -> None:
    bins = min(40, max(8, round(len(values) ** 0.5) + 4))
    edges = np.histogram_bin_edges(values, bins)
    if task == "classification" and edges[0] < 0 < edges[-1]:
        edges = edges - edges[np.argmin(np.abs(edges))]  # a bar never holds right and wrong
        edges = np.concatenate([edges, [2 * edges[-1] - edges[-2]], [2 * edges[0] - edges[1]]])
        edges = np.sort(edges)
    counts, _ = np.histogram(values, edges)
    colours = [ACCENT if task != "classification" or e >= 0 else SECOND for e in edges[:-1]]
    axes.bar(edges[:-1], counts, np.diff(edges), align="edge", color=colours, alpha=0.8)
    if task != "density":
        axes.axvline(0.0, color=INK, linewidth=0.9)


def learning(objective: list[float], solver: str) -> Picture:
    """The objective while learning."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.plot(range(len(objective)), objective, color=ACCENT)
        axes.set_xlabel("step")
        axes.set_ylabel("objective")
        axes.grid(alpha=0.6)

    caption = (
        f"The objective that {solver or 'the solver'} lowers, step by step; it should level off."
    )
    data = {"objective": objective[:: -(-len(objective) // 200)]}
    return Picture("learning", "Learning", caption, inline_svg("learning", (7.5, 2.6), draw), data)


def weight_picture(weights: list[dict[str, Any]]) -> Picture:
    """The largest coefficients."""
    rows = weights[:12][::-1]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.barh([_short(row["column"]) for row in rows], [row["weight"] for row in rows],
                  color=ACCENT, alpha=0.8)  # fmt: skip
        axes.set_xlabel("size of the coefficient, columns on one scale")
        axes.tick_params(left=False)

    caption = (
        "Columns with the largest coefficients in the chosen model. Columns that say the same share "
        "their weight, and a large coefficient is no proof of a cause."
    )
    size = (7.5, 0.9 + 0.32 * len(rows))
    drawn = inline_svg("weights", size, draw)
    return Picture("weights", "The largest coefficients", caption, drawn, {"weights": weights[:12]})


def _short(name: str, most: int = 26) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def missing_map(table: Table) -> Picture | None:
    """Where values are missing: columns down, rows of the table across; None when none is."""
    holes = [c.name for c in table.schema if table.frame[c.name].null_count()][:40]
    if not holes:
        return None
    bins = min(_MAP_BINS, table.n_rows)
    edges = np.linspace(0, table.n_rows, bins + 1).astype(int)
    mask = np.stack([table.frame[name].is_null().to_numpy() for name in holes])  # (C, n)
    share = np.add.reduceat(mask.astype(float), edges[:-1], 1) / np.diff(edges)  # (C, bins)

    def draw(figure: Figure) -> None:
        from matplotlib.patches import Rectangle

        axes = figure.subplots()
        for i, j in zip(*np.nonzero(share), strict=True):
            box = (edges[j], i - 0.4), edges[j + 1] - edges[j], 0.8
            axes.add_patch(Rectangle(*box, color=SECOND, alpha=0.2 + 0.8 * share[i, j], lw=0))
        total = mask.mean(1)
        names = [f"{name[:26]} ({total[i]:.0%})" for i, name in enumerate(holes)]
        axes.set_yticks(range(len(holes)), names)
        axes.set_xlim(0, table.n_rows)
        axes.set_ylim(len(holes) - 0.4, -0.6)
        axes.set_xlabel("row of the table")
        axes.tick_params(left=False)

    size = (7.5, 1.0 + 0.3 * len(holes))
    caption = (
        "Darker is more missing. Blocks and edges suggest that values are missing for a reason."
    )
    data = {"columns": holes, "share": mask.mean(1)}
    return Picture("missing", "Missing values", caption, inline_svg("missing", size, draw), data)
