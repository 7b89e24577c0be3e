"""The loss on held-out rows while a solver runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from groundstate.learn.callbacks.base import Run


@contextmanager
def evaluating(*modules: nn.Module) -> Iterator[None]:
    """Put modules into evaluation mode (no dropout, no noise) and back."""
    kept = [[(m, m.training) for m in module.modules()] for module in modules]
    for module in modules:
        module.eval()
    try:
        yield
    finally:
        for pairs in kept:
            for module, training in pairs:
                module.training = training


def held_out_loss(
    run: Run, data: Mapping[str, Tensor], weight: Tensor | None = None, chunk_rows: int = 2**16
) -> float:
    """The rule's weighted mean loss on held-out rows, in evaluation mode, with one transfer."""
    rule, energy = run.problem.rule, run.energy
    generator = run.problem.key.fold("validation").torch(energy.placement()[0])
    rows = len(next(iter(data.values())))
    total = torch.zeros((), dtype=torch.float64)
    context = torch.enable_grad() if rule.needs_gradient else torch.no_grad()
    with evaluating(rule, energy), context:
        for at in range(0, rows, chunk_rows):
            piece = (
                data
                if rows <= chunk_rows
                else {k: v[at : at + chunk_rows] for k, v in data.items()}
            )
            loss = rule(energy, piece, generator=generator).loss.detach().double()
            part = loss.sum() if weight is None else loss @ weight[at : at + chunk_rows].double()
            total = total.to(part.device) + part
    return float(total) / (rows if weight is None else float(weight.sum()))
