"""A picture of a variational autoencoder: encoder, the code between, decoder."""

from __future__ import annotations

from typing import Any

from torch import nn

from groundstate.nn.inspect.draw import GAP, MARGIN, STEP, Canvas, Drawing

SHOWN = 6  # units of a layer that are drawn


def drawing(model: Any, form: str) -> Drawing:
    """The layers as columns; the code as a random node, or as a function of noise."""
    if form not in ("plain", "reparametrised"):
        raise ValueError(f"form must be 'plain' or 'reparametrised', got {form!r}")
    energy, rule = model.energy_, model._rule
    encoder = rule.encoder if getattr(rule, "encoder", None) is not None else None
    encoder = encoder or getattr(energy.prior, "encoder", None)
    into = _widths(encoder) if encoder is not None else [energy.likelihood.d]
    out = _widths(energy.decoder)
    canvas = Canvas()
    top = MARGIN + SHOWN * STEP / 2
    before = _column(canvas, MARGIN, top, into[0], "x")
    at = MARGIN
    for width in into[1:-1]:
        at += GAP
        before = _joined(canvas, before, _column(canvas, at, top, width, ""))
    at += GAP
    mean, spread = (at, top - STEP), (at, top + STEP)
    for place, text in ((mean, "μ"), (spread, "σ")):
        canvas.node(*place, text)
        for a in before:
            canvas.arrow(a, place)
    at += GAP
    code = (at, top)
    canvas.node(*code, "z" if form == "reparametrised" else "z~q")
    canvas.arrow(mean, code)
    canvas.arrow(spread, code)
    if form == "reparametrised":
        noise = (at, top + 3 * STEP)
        canvas.node(*noise, "ε")
        canvas.arrow(noise, code)
        canvas.text(at, top - STEP, "z = μ + σε")
    else:
        canvas.text(at, top - STEP, "z ~ N(μ, σ²)")
    before = [code]
    for width in out[1:]:
        at += GAP
        before = _joined(canvas, before, _column(canvas, at, top, width, ""))
    canvas.text(at, top + (SHOWN / 2 + 1) * STEP, "x̂")
    return canvas.drawing()


def _widths(net: nn.Module) -> list[int]:
    linear = [m for m in net.modules() if isinstance(m, nn.Linear)]
    if not linear:
        return [1, 1]
    return [linear[0].in_features, *(m.out_features for m in linear)]


def _column(
    canvas: Canvas, x: float, middle: float, width: int, text: str
) -> list[tuple[float, float]]:
    shown = min(width, SHOWN)
    places = [(x, middle + (i - (shown - 1) / 2) * STEP) for i in range(shown)]
    for place in places:
        canvas.node(*place, text)
    canvas.text(x, middle + (SHOWN / 2 + 0.3) * STEP, f"{width}")
    return places


def _joined(
    canvas: Canvas, before: list[tuple[float, float]], after: list[tuple[float, float]]
) -> list[tuple[float, float]]:
    for a in before:
        for b in after:
            canvas.edge(a, b, strength=0.1)
    return after
