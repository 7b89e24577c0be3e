"""The page and the folder of a study of generators: verdict, numbers, rows beside real ones."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from groundstate.evaluate.generators.report import GeneratorAssessment
from groundstate.report.style import CSS
from groundstate.report.svg import inline_svg
from groundstate.store import RunDir
from groundstate.study.generators.job import GeneratorStudy
from groundstate.study.numbers import show, show_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 12  # columns that are drawn
WALL = 8  # pictures along an edge of the wall
ROWS = 8  # rows of a table that are shown

MEANING = {  # of a number, by the beginning of its name
    "held-out log-likelihood": "how probable unseen rows are under the model, a row; higher is better",
    "bits per dimension": "the same in bits for each column; lower is better",
    "training minus held-out": "above 0 the model knows its training rows better than new ones",
    "rows held impossible": "unseen rows with a level that no training row has; no mean counts them",
    "Fréchet": "between means and covariances of new and real rows; as small as that of real rows is best",
    "MMD": "between the distributions; near 0 is best, a small p says that they differ",
    "precision": "share of new rows that lie among real ones: are they plausible",
    "recall": "share of real rows that new ones lie around: is anything forgotten",
    "density": "real rows around a new one, against those around a real one; near 1 is best",
    "coverage": "share of real rows with a new one nearby; near 1 is best",
    "distinguished": "how often a classifier tells new rows from real ones, on rows it did not learn from",
    "memorisation": "new rows against unseen real ones in their distance to training rows",
    "near copies": "nearer to a training row than nearly all training rows are to each other",
    "equal to": "with rows of few values this happens by chance, too",
}

_SCRIPT = '''"""Gives the numbers of this report again: python reproduce.py [SOURCE]."""

import json
import sys

from groundstate.study.generators import study_generators

found = study_generators(sys.argv[1] if len(sys.argv) > 1 else {source!r}, **{settings!r})
print(json.dumps(found.facts(), indent=2))
'''


def write_generators(
    found: GeneratorStudy,
    run: RunDir,
    source: str,
    settings: dict[str, Any],
    *,
    keep_model: bool,
    seed: int,
) -> dict[str, Any]:
    """Model, page, numbers, new rows and script into an open run; returns the facts."""
    facts = found.facts()
    n = len(found.train) + 2 * len(found.test)
    twin = found.model.sample(
        min(n, 10_000) if found.kind == "table" else WALL**2, random_state=seed
    )
    run.write_json("report.json", facts)
    run.write_text("report.html", generators_page(found, twin))
    run.write_text("reproduce.py", _SCRIPT.format(source=source, settings=settings))
    if found.kind == "table":
        run.write_text("synthetic.csv", twin.write_csv())
    else:
        run.write_bytes("wall.png", wall(np.asarray(twin)))
    if keep_model:
        run.save("model.gs", found.model)
    return facts


def generators_page(found: GeneratorStudy, twin: Any) -> str:
    """One HTML file that needs nothing else."""
    title = f"New rows like {found.name}"
    verdict = "".join(f"<p>{escape(text)}</p>" for text in found.verdict)
    numbers = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(value)}</td><td>{escape(_meaning(name))}</td></tr>"
        for name, value in found.numbers()
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td>{escape(v)}</td>"
            for v in (
                c.name,
                show_interval(c.assessment.c2st),
                show_interval(c.assessment.frechet),
                ""
                if c.assessment.likelihood is None
                else show_interval(c.assessment.likelihood.log_likelihood),
                *_covered(c.assessment),
                "" if c.kept is None else f"{c.kept:.0%}",
                c.assessment.verdict,
                f"{c.seconds:.1f} s",
            )
        )
        + "</tr>"
        for c in found.candidates
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in found.notes)
    notes += "".join(
        f"<li>{escape(k)} could not learn these rows: {escape(v)}</li>"
        for k, v in found.failed.items()
    )
    shown = (
        _pictures(found, twin)
        if found.kind == "image"
        else _columns(found, twin) + _some_rows(twin)
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)} – groundstate</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n"
        f"<header>\n<h1>{escape(title)}</h1>\n"
        f'<p class="sub">learned from {found.assessment.rows["training"]:,} rows, judged on '
        f"{found.assessment.rows['held-out']:,} others</p>\n"
        f'<div class="verdict">{verdict}</div>\n</header>\n'
        f"<section><h2>Faithful and private?</h2><table>{numbers}</table></section>\n"
        f"{_lessons(found)}"
        f"<section><h2>What it makes</h2>{shown}</section>\n"
        "<section><h2>Candidates</h2><p>On the rows that chose between them. Of those that repeat no training "
        "rows and are not clearly easier to distinguish from real rows than the hardest, the first is the one "
        "whose rows teach most.</p><table><tr><th>model</th>"
        "<th>distinguished from real rows</th><th>Fréchet distance</th><th>log-likelihood</th>"
        "<th>precision</th><th>recall</th><th>near copies</th><th>learned of real</th><th>verdict</th>"
        f"<th>learning</th></tr>{rows}</table></section>\n"
        + (f"<section><h2>Notes</h2><ul>{notes}</ul></section>\n" if notes else "")
        + "</main>\n</body>\n</html>\n"
    )


def _lessons(found: GeneratorStudy) -> str:
    """What a model of each column learns from new rows beside real ones."""
    if not found.lessons:
        return ""
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td>{escape(v)}</td>"
            for v in (
                c.name,
                c.score,
                show_interval(c.generated),
                show(c.real),
                show(c.constant),
                f"{c.kept:.0%}",
            )
        )
        + "</tr>"
        for c in found.lessons
    )
    return (
        "<section><h2>What can be learned from it?</h2><p>A boosted model predicts each column from the "
        "others, on real rows that nothing learned from: after new rows, after as many training rows, and a "
        "constant answer. A column that real rows teach nothing about is left out.</p><table><tr>"
        "<th>column</th>"
        "<th>score</th><th>from new rows</th><th>from real rows</th><th>constant</th><th>kept</th></tr>"
        f"{rows}</table></section>\n"
    )


def _meaning(name: str) -> str:
    return next((text for start, text in MEANING.items() if name.startswith(start)), "")


def _covered(a: GeneratorAssessment) -> tuple[str, str, str]:
    """Precision, recall and near copies of a candidate."""
    found = a.precision_recall
    copies = "" if a.memorisation is None else f"{a.memorisation.copies:.1%}"
    return f"{found.precision:.2f}", f"{found.recall:.2f}", copies


def _columns(found: GeneratorStudy, twin: pl.DataFrame) -> str:
    names = [name for name in twin.columns if name in found.test.columns][:SHOWN]

    def draw(figure: Figure) -> None:
        across = min(4, len(names))
        axes = figure.subplots(-(-len(names) // across), across, squeeze=False).ravel()
        for ax in axes[len(names) :]:
            ax.set_axis_off()
        for ax, name in zip(axes, names):
            _compared(ax, found.test[name], twin[name])
            ax.set_title(name, fontsize=9)
        axes[0].legend(fontsize=7)

    size = (9.0, 2.0 * -(-len(names) // min(4, len(names))))
    caption = "each column of held-out rows and of new ones"
    return f"<figure>{inline_svg('columns', size, draw)}<figcaption>{caption}</figcaption></figure>"


def _compared(ax: Any, real: pl.Series, new: pl.Series) -> None:
    if real.dtype.is_numeric() or real.dtype.is_temporal():
        if real.dtype.is_temporal():
            real, new = (s.cast(pl.Datetime("us")).to_physical() for s in (real, new))
        a, b = (s.drop_nulls().cast(pl.Float64).to_numpy() for s in (real, new))
        bins = np.histogram_bin_edges(np.concatenate([a, b]), 20)
        for values, label, colour in ((a, "real", "C0"), (b, "new", "C1")):
            ax.hist(values, bins, density=True, histtype="step", label=label, color=colour)
    else:
        words = [str(w) for w in real.value_counts(sort=True)[real.name].to_list()[:8]]
        for k, (column, label) in enumerate(((real, "real"), (new, "new"))):
            own = np.array([str(v) for v in column.to_list()])
            share = [float((own == w).mean()) for w in words]
            ax.bar(np.arange(len(words)) + 0.4 * k, share, 0.4, label=label, color=f"C{k}")
        ax.set_xticks(np.arange(len(words)) + 0.2, [w[:8] for w in words], fontsize=6, rotation=30)
    ax.tick_params(labelsize=6)
    ax.set_yticks([])


def _some_rows(twin: pl.DataFrame) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in twin.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_cell(v))}</td>" for v in row) + "</tr>"
        for row in twin.head(ROWS).iter_rows()
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _pictures(found: GeneratorStudy, twin: Any) -> str:
    def draw(figure: Figure) -> None:
        for ax, (rows, name) in zip(
            figure.subplots(1, 2), ((found.test[: WALL**2], "real"), (np.asarray(twin), "new"))
        ):
            ax.imshow(tiled(rows), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            ax.set_title(name)
            ax.set_axis_off()

    caption = "held-out pictures and new ones"
    return (
        f"<figure>{inline_svg('wall', (9.0, 4.6), draw)}<figcaption>{caption}</figcaption></figure>"
    )


def tiled(pictures: Any) -> Any:
    """Pictures ``(n, C, H, W)`` or ``(n, H, W)`` side by side, in [0, 1]."""
    rows = np.clip(np.asarray(pictures, float), 0, 1)
    rows = rows[:, None] if rows.ndim == 3 else rows
    n, c, h, w = rows.shape
    edge = int(np.ceil(np.sqrt(n)))
    sheet = np.ones((edge * (h + 1), edge * (w + 1), c))
    for i, picture in enumerate(rows):
        top, left = (i // edge) * (h + 1), (i % edge) * (w + 1)
        sheet[top : top + h, left : left + w] = picture.transpose(1, 2, 0)
    return sheet[:, :, 0] if c == 1 else sheet[:, :, :3]


def wall(pictures: Any) -> bytes:
    """A PNG of pictures side by side."""
    import io

    from matplotlib.image import imsave

    buffer = io.BytesIO()
    imsave(
        buffer,
        np.repeat(np.repeat(tiled(pictures), 4, 0), 4, 1),
        cmap="gray",
        vmin=0,
        vmax=1,
        format="png",
    )
    return buffer.getvalue()
