r"""Recurrent networks as pictures: unrolled in time, inside a cell, gates while reading."""

from __future__ import annotations

from torch import Tensor

from groundstate.errors import Unsupported
from groundstate.nn.inspect.draw import HIGH, INK, LOW, MARGIN, Canvas, Drawing
from groundstate.nn.recurrent.gates import gates
from groundstate.nn.recurrent.recurrent import Recurrent

Point = tuple[float, float]
PATTERNS = ("many-to-one", "one-to-many", "aligned", "unaligned")
WIDE, TALL, SIDE = 74.0, 62.0, 11.0


def draw_unrolled(
    steps: int = 4, pattern: str = "aligned", *, feedback: bool = False, layers: int = 1
) -> Drawing:
    r"""A recurrent network with one column per item: :math:`x_t \to h_t \to y_t`, :math:`h_{t-1}\to h_t`.

    Parameters
    ----------
    steps : T, items of the input (and of the output, where it has as many)
    pattern : "many-to-one" :math:`p(y\mid x_{1..T})`, "one-to-many" :math:`\prod_t p(y_t\mid x)`,
        "aligned" :math:`\prod_t p(y_t\mid x_{\le t})`, or "unaligned", which reads all of x before it
        writes the first y
    feedback : every output is an input of the next step, :math:`p(y_t\mid y_{<t}, \cdot)`; one that
        writes after it has read always does
    layers : stacked states

    Examples
    --------
    >>> draw_unrolled(4).nodes, draw_unrolled(4).edges
    (13, 12)
    >>> draw_unrolled(4, feedback=True).edges
    15
    """
    if pattern not in PATTERNS:
        raise Unsupported(f"pattern {pattern!r} is not known; use one of {', '.join(PATTERNS)}")
    if steps < 1 or layers < 1:
        raise ValueError(f"steps and layers must be at least 1, got {steps} and {layers}")
    reads = 1 if pattern == "one-to-many" else steps
    columns = 2 * steps if pattern == "unaligned" else steps
    first_out = {"many-to-one": steps - 1, "unaligned": steps}.get(pattern, 0)
    canvas = Canvas()

    def at(t: int, level: int) -> Point:
        return MARGIN + (t + 1) * WIDE, MARGIN + (layers + 1 - level) * TALL

    def mark(letter: str, t: int) -> str:
        alone = (letter == "x" and reads == 1 and pattern == "one-to-many") or (
            letter == "y" and pattern == "many-to-one"
        )
        return letter if alone else f"{letter}{t + 1}"

    for layer in range(1, layers + 1):
        canvas.node(*at(-1, layer), "h0" if layers == 1 else f"h0,{layer}", name="start")
        for t in range(columns):
            canvas.arrow(at(t - 1, layer), at(t, layer), name="state")
            canvas.node(*at(t, layer), f"h{t + 1}", name=f"state {t + 1}, layer {layer}")
            if layer > 1:
                canvas.arrow(at(t, layer - 1), at(t, layer), name="layer")
    for t in range(reads):
        canvas.arrow(at(t, 0), at(t, 1), name="input")
        canvas.node(*at(t, 0), mark("x", t), name=f"input {t + 1}")
    fed = feedback or pattern == "unaligned"
    for t in range(first_out, columns):
        canvas.arrow(at(t, layers), at(t, layers + 1), name="output")
        canvas.node(
            *at(t, layers + 1), mark("y", t - first_out), name=f"output {t - first_out + 1}"
        )
        if fed and t > first_out:
            canvas.arrow(at(t - 1, layers + 1), at(t, 1), -1.0, name="feedback")
    return canvas.drawing()


def draw_cell(cell: str) -> Drawing:
    r"""The inside of a cell: gates as circles, products and sums as small ones, time from left to right.

    Parameters
    ----------
    cell : "rnn", "lstm" or "gru"

    Examples
    --------
    >>> draw_cell("lstm").nodes, draw_cell("gru").nodes, draw_cell("rnn").nodes
    (14, 11, 4)
    """
    if cell not in CELLS:
        raise Unsupported(f"cell {cell!r} is not known; use one of {', '.join(CELLS)}")
    places, edges = CELLS[cell]
    canvas = Canvas()
    at = {name: (MARGIN + 40 + WIDE * x, MARGIN + 40 + TALL * y) for name, x, y, _ in places}
    for a, b in edges:
        canvas.arrow(at[a], at[b], name=f"{a} to {b}")
    for name, _, _, text in places:
        canvas.node(*at[name], text, name=name)
    canvas.text(MARGIN + 40 + WIDE * 2, MARGIN, f"{cell.upper()}: {FORMULAS[cell]}")
    return canvas.drawing()


def draw_gates(net: Recurrent, x: Tensor, layer: int = 0) -> Drawing:
    """Gates and states while one sequence is read: a square per unit and item.

    Blue is positive, orange negative, and the depth of the colour how much; gates are between 0 and 1.

    Parameters
    ----------
    net : in one direction
    x : one sequence ``(T, in_features)``
    layer : which of the stacked ones

    Examples
    --------
    >>> import torch
    >>> picture = draw_gates(Recurrent("lstm", 2, 3), torch.ones(5, 2))
    >>> picture.nodes == 6 * 5 * 3
    True
    """
    seen = {name: v[0].detach() for name, v in gates(net, x[None], layer).items()}
    cells, texts = [], []
    top = MARGIN
    for name, values in seen.items():
        scale = max(1.0, float(values.abs().max()))
        texts.append(_text(MARGIN, top + SIDE * net.hidden / 2 + 4, name))
        for unit, row in enumerate(values.T.tolist()):
            for t, value in enumerate(row):
                fill = HIGH if value >= 0 else LOW
                cells.append(
                    f'<rect class="node" x="{MARGIN + 20 + t * SIDE:g}" y="{top + unit * SIDE:g}" '
                    f'width="{SIDE - 1:g}" height="{SIDE - 1:g}" fill="{fill}" '
                    f'fill-opacity="{abs(value) / scale:.3f}" stroke="#dde" stroke-width="0.4">'
                    f"<title>{name}, item {t + 1}, unit {unit}: {value:.3g}</title></rect>"
                )
        top += SIDE * net.hidden + 10
    width = 2 * MARGIN + 20 + SIDE * len(x)
    texts.append(_text(MARGIN + 20 + SIDE * len(x) / 2, top + 12, "item"))
    body = "\n".join([*cells, *texts])
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {top + MARGIN:g}" '
        f'font-family="sans-serif">\n{body}\n</svg>\n'
    )
    return Drawing(svg, len(cells), 0)


def _text(x: float, y: float, text: str) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="11" fill="{INK}" text-anchor="middle">{text}</text>'
    )


FORMULAS = {
    "rnn": "h = tanh(Wx + Uh + b)",
    "lstm": "c = f⊙c + i⊙g, h = o⊙tanh c",
    "gru": "h = u⊙h + (1−u)⊙n",
}
# name, column, row, what stands in the circle
Places = list[tuple[str, float, float, str]]
CELLS: dict[str, tuple[Places, list[tuple[str, str]]]] = {
    "rnn": (
        [("h before", 0, 1, "h"), ("x", 1, 2, "x"), ("state", 1, 1, "tanh"), ("h", 2, 1, "h′")],
        [("h before", "state"), ("x", "state"), ("state", "h")],
    ),
    "lstm": (
        [("c before", 0, 0, "c"), ("h before", 0, 2, "h"), ("x", 0, 3, "x"),
         ("forget", 1, 1, "f"), ("input", 2, 1.5, "i"), ("candidate", 2, 2.15, "g"),
         ("output", 4, 3.2, "o"), ("kept", 1, 0, "×"), ("written", 3, 1, "×"), ("sum", 3, 0, "+"),
         ("squashed", 4, 0.5, "tanh"), ("shown", 5, 1, "×"), ("c", 6, 0, "c′"), ("h", 6, 1, "h′")],
        [("c before", "kept"), ("forget", "kept"), ("kept", "sum"), ("input", "written"),
         ("candidate", "written"), ("written", "sum"), ("sum", "c"), ("sum", "squashed"),
         ("squashed", "shown"),
         ("output", "shown"), ("shown", "h"),
         *((a, b) for a in ("h before", "x") for b in ("forget", "input", "candidate", "output"))],
    ),
    "gru": (
        [("h before", 0, 0, "h"), ("x", 0, 3, "x"), ("reset", 1, 2, "r"), ("update", 3, 2, "u"),
         ("read", 1, 1, "×"), ("candidate", 2, 2, "n"), ("kept", 3, 0, "×"), ("rest", 4, 2, "1−"),
         ("written", 4, 1, "×"), ("sum", 5, 0, "+"), ("h", 6, 0, "h′")],
        [("h before", "kept"), ("h before", "read"), ("reset", "read"), ("read", "candidate"),
         ("candidate", "written"), ("update", "kept"), ("update", "rest"), ("rest", "written"),
         ("kept", "sum"), ("written", "sum"), ("sum", "h"), ("x", "candidate"),
         *((a, b) for a in ("h before", "x") for b in ("reset", "update"))],
    ),
}  # fmt: skip
