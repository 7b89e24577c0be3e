"""The page about a solved equation: what was asked, how well it holds, and pictures of the field."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from groundstate.report.style import CSS
from groundstate.report.svg import inline_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = 101


def solution_facts(model: Any) -> dict[str, Any]:
    """The numbers of a fitted ``PINN``, as JSON takes them."""
    problem = model.problem
    facts: dict[str, Any] = {
        "equation": problem.text(),
        "kind": problem.classify(),
        "coordinates": dict(
            zip(problem.domain.names, zip(problem.domain.low, problem.domain.high))
        ),
        "unknowns": list(problem.unknowns),
        "parameters": model.parameters_,
        "intervals": model.intervals_,
        "loss": model.loss_,
        "points": model.n_points_,
        "steps": model.n_iter_,
        "stop": model.history_.stop,
    }
    if problem.reference is not None and None not in problem.parameters.values():
        _, X = problem.domain.grid(_shape(model))
        exact = np.asarray(problem.solution(X))
        found = np.asarray(model.predict(X))
        facts["relative L2 error"] = float(np.linalg.norm(found - exact) / np.linalg.norm(exact))
    return facts


def _shape(model: Any) -> list[int]:
    d = len(model.problem.domain.names)
    return [SIDE if d <= 2 else 21] * d


def solution_page(model: Any, facts: dict[str, Any]) -> str:
    """One HTML file that needs nothing else."""
    rows = [
        f"<tr><th>{escape(name)}</th><td>{escape(words)}</td></tr>"
        for name, words in solution_words(facts)
    ]
    figures = "".join(
        f"<figure>{inline_svg(name, (8.0, 3.2), draw, wide=True)}"
        f"<figcaption>{escape(caption)}</figcaption></figure>"
        for name, caption, draw in _pictures(model)
    )
    heading = f"Solving {facts['equation']}"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(heading)} – groundstate</title>\n<style>{CSS}</style>\n</head>\n<body>\n"
        f"<main>\n<header><h1>{escape(heading)}</h1></header>\n<table>{''.join(rows)}</table>\n"
        f"{figures}\n</main>\n</body>\n</html>\n"
    )


def solution_words(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The facts for reading.

    >>> solution_words({"loss": {"equation": 0.01742481667}, "intervals": {}})
    [('loss', 'equation: 0.0174248'), ('intervals', 'none')]
    """
    return [
        (name, ", ".join(f"{k}: {_text(v)}" for k, v in value.items()) or "none")
        if isinstance(value, dict)
        else (name, _text(value))
        for name, value in facts.items()
    ]


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}".replace("-", "−", 1 if value < 0 else 0)
    if isinstance(value, tuple | list):
        return " to ".join(map(_text, value)) if len(value) == 2 else ", ".join(map(_text, value))
    return str(value)


def _pictures(model: Any) -> list[tuple[str, str, Any]]:
    names = model.problem.domain.names
    found: list[tuple[str, str, Any]] = []
    if len(names) <= 2:
        found.append(("field", "The solution, and the residual of the equation.", _field(model)))
    found.append(("loss", "The loss after each step.", _loss(model)))
    return found


def _field(model: Any) -> Any:
    names, unknowns = model.problem.domain.names, model.problem.unknowns
    axes, u = model.predict_grid(SIDE)
    _, X = model.problem.domain.grid(SIDE)
    r = np.abs(np.asarray(model.residual(X)).reshape(len(X), -1)).sum(1)

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        if len(names) == 1:
            left.plot(axes[0], u, label=list(unknowns))
            left.legend()
            right.semilogy(axes[0], np.maximum(r, 1e-16))
            left.set(xlabel=names[0])
            right.set(xlabel=names[0], title="|residual|")
            return
        shown = u if u.ndim == 2 else u[..., 0]
        for ax, values, title in (
            (left, shown, unknowns[0]),
            (right, r.reshape(SIDE, SIDE), "|residual|"),
        ):
            image = ax.pcolormesh(*axes, values.T, shading="nearest", rasterized=True)
            figure.colorbar(image, ax=ax)
            ax.set(xlabel=names[0], ylabel=names[1], title=title)

    return draw


def _loss(model: Any) -> Any:
    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        ax.semilogy(model.history_.objective)
        ax.set(xlabel="step", ylabel="loss")

    return draw
