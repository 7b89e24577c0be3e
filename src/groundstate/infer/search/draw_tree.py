r"""The tree of all beginnings of a sequence, with the ones that a search kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.sequences.step import StepState
from groundstate.errors import Unsupported
from groundstate.infer.search.beam import repeated
from groundstate.infer.search.decode import Decoded, begin
from groundstate.nn.inspect.draw import GAP, MARGIN, STEP, Canvas, Drawing

MOST = 400  # nodes that can be read


@torch.no_grad()
def draw_tree(
    energy: Energy,
    *found: Decoded,
    steps: int | None = None,
    given: dict[str, Any] | None = None,
    names: Sequence[str] | None = None,
    least: float = 0.0,
) -> Drawing:
    r"""All beginnings of a sequence of one row, an edge for each next symbol with its probability.

    Leaves carry the probability of their whole string. What the given searches found is drawn
    strong: the first in blue, a second one in orange.

    Parameters
    ----------
    energy : with the ability ``step``, such as ``SequenceEnergy``
    found : results of ``decode``; their first row is shown
    steps : symbols at most; by default as many as the energy is long
    given : values of the energy's other variables, one row
    names : of the symbols, by default their numbers
    least : leave out beginnings of lower probability

    Examples
    --------
    >>> from groundstate.energy import ChainRuleEnergy
    >>> from groundstate.infer import decode
    >>> p = torch.tensor([[0.33, 0.27], [0.38, 0.02]])
    >>> tree = ChainRuleEnergy.from_joint(p)
    >>> picture = draw_tree(tree, decode(tree, "beam", beams=2), decode(tree), names="AB")
    >>> picture.nodes, picture.edges
    (7, 6)
    """
    step, (increments, state) = begin(energy, None, dict(given or {}), steps)
    if len(increments) != 1:
        raise Unsupported(f"a tree shows one row, got {len(increments)}")
    depth, k = state.value.shape[1], increments.shape[1]
    if least <= 0 and sum(k**i for i in range(depth + 1)) > MOST:
        raise Unsupported(
            f"the tree of {k} symbols and {depth} steps has more than {MOST} nodes; draw fewer "
            "steps, or leave out beginnings with least="
        )
    labels = [str(i) for i in range(k)] if names is None else list(names)
    kept = [_beginnings(one) for one in found]
    levels = _levels(step, increments, state, dict(given or {}), least)
    return _drawn(levels, kept, labels)


Node = tuple[tuple[int, ...], float, float]  # beginning, probability of its last symbol and of all


def _levels(
    step: Any, increments: Tensor, state: StepState, given: dict[str, Any], least: float
) -> list[list[Node]]:
    levels: list[list[Node]] = [[((), 1.0, 1.0)]]
    depth = state.value.shape[1]
    total = torch.ones(1, dtype=torch.float64)
    for t in range(depth):
        p = (-increments).softmax(-1).double().cpu()
        grown = total[:, None] * p  # (nodes, K)
        keep = (grown >= least) & (grown > 0)
        row, symbol = keep.nonzero(as_tuple=True)
        before = levels[-1]
        levels.append(
            [
                ((*before[int(r)][0], int(s)), float(p[r, s]), float(grown[r, s]))
                for r, s in zip(row, symbol)
            ]
        )
        if len(levels[-1]) > MOST:
            raise Unsupported(f"more than {MOST} beginnings are as probable as {least:g}")
        total = grown[row, symbol]
        if t + 1 == depth or not len(row):
            break
        state = state.pick(row.to(increments.device)).append(symbol.to(increments.device))
        increments, state = step(state, **repeated(given, len(row)))
    return levels


def _beginnings(found: Decoded) -> set[tuple[int, ...]]:
    strings = [tuple(s) for s in found.tokens[0].tolist()]
    ends = found.lengths[0].tolist()
    return {s[:i] for s, end in zip(strings, ends) for i in range(1, int(end) + 1)}


def _drawn(
    levels: Sequence[Sequence[Node]], kept: Sequence[set[tuple[int, ...]]], labels: Sequence[str]
) -> Drawing:
    canvas = Canvas()
    place: dict[tuple[int, ...], tuple[float, float]] = {}
    children: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for level in levels[1:]:
        for name, _, _ in level:
            children.setdefault(name[:-1], []).append(name)
    leaves = sorted(name for level in levels for name, _, _ in level if name not in children)
    for slot, name in enumerate(leaves):
        place[name] = (MARGIN + GAP * len(name), MARGIN + STEP * slot)
    for level in reversed(levels):  # parents stand in the middle of their children
        for name, _, _ in level:
            if name in children:
                ys = [place[c][1] for c in children[name]]
                place[name] = (MARGIN + GAP * len(name), (min(ys) + max(ys)) / 2)
    for level in levels:
        for name, p, whole in level:
            x, y = place[name]
            hit = next((i for i, one in enumerate(kept) if name in one), None)
            text = labels[name[-1]] if name else ""
            canvas.node(x, y, text, faded=bool(kept) and hit is None and bool(name))
            if name:
                weight = {None: 0.0, 0: 1.0}.get(hit, -1.0)
                strength = 1.0 if hit is not None else max(0.05, 0.4 * math.sqrt(p))
                above = place[name[:-1]]
                canvas.edge(above, (x, y), weight, strength, name=f"{p:.4g}")
                canvas.text((above[0] + x) / 2, (above[1] + y) / 2 - 4, _short(p), 9)
            if name not in children and name:
                canvas.text(x + 34, y + 3, _short(whole), 10)
    return canvas.drawing()


def _short(p: float) -> str:
    return f"{p:.2f}".removeprefix("0") if p >= 0.005 else f"{p:.0e}"
