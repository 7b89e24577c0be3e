r"""Margins on sequences: the worst offender by dynamic programming or among the best of a beam."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from groundstate.energy.base import Energy
from groundstate.learn.base import Batch
from groundstate.learn.rules.inner import spread
from groundstate.math.chains.chain import ChainDistribution, ChainFactors

if TYPE_CHECKING:
    from groundstate.learn.rules.common import Plan


def hamming(target: Tensor, values: Tensor, dtype: torch.dtype) -> Tensor:
    """In how many places every value differs from every target, ``(B, K)``.

    >>> hamming(torch.tensor([[0, 1]]), torch.tensor([[0, 1], [1, 0]]), torch.float32)
    tensor([[0., 2.]])
    """
    return (target.flatten(1)[:, None] != values.flatten(1)[None]).sum(-1).to(dtype)


def chain_margin(
    plan: Plan, batch: Batch, m: float, cost: str | None, T: float
) -> tuple[Tensor, Tensor]:
    r"""Positive term and margin loss ``(B,)`` over all sequences of a chain, exact.

    With the Hamming cost the augmented energy :math:`e - m\Delta` is a chain again. With the 0-1
    cost the best wrong sequence is the best or the second best; summed at ``T``, all sequences but
    the target get :math:`e^{m/T}` times their weight.
    """
    name = plan.over[0]
    y = batch[name]
    chain = plan.view.ability("chain", name)
    assert chain is not None
    factors: ChainFactors = chain(**plan.known(batch))
    y = torch.where(factors.inside, y, 0)
    positive = factors.energy(y)
    if cost == "hamming":
        wrong = functional.one_hot(y, factors.unary.shape[-1]).logical_not()
        augmented = factors.plus(-m * (wrong & factors.inside[..., None]).to(positive.dtype))
        distribution = ChainDistribution(augmented, T)
        if T > 0:
            return positive, positive - distribution.free_energy
        return positive, functional.relu(positive - augmented.energy(distribution.mode))
    if T > 0:
        log_p = (-positive / T - ChainDistribution(factors, T).log_partition).clamp(max=-1e-12)
        # T log(p + e^{m/T} (1 - p)) + e_y + F, stable for p near 1
        log_wrong = m / T + torch.log(-torch.expm1(log_p))
        return positive, T * (torch.logaddexp(log_p, log_wrong) - log_p)
    best, _ = ChainDistribution(factors).topk(2)  # (2, B, L)
    is_target = ((best[0] == y) | ~factors.inside).all(-1)
    rival = torch.where(is_target[:, None], best[1], best[0])
    alone = torch.isposinf(factors.energy(rival).detach())  # no other sequence exists
    contrast = factors.energy(torch.where(alone[:, None], y, rival)) - m * (~alone)
    return positive, functional.relu(positive - contrast)


def nbest(energy: Energy, name: str, known: Mapping[str, Tensor], rows: int, width: int) -> Tensor:
    """The sequences a beam of this width ends with, best first, ``(width, B, L)``."""
    step = energy.ability("step", name)
    assert step is not None
    with torch.no_grad():
        increments, state = step(None, **known)  # (b, K), one row when nothing is given
        total = increments.new_zeros(increments.shape[0], 1)  # (b, beams)
        b, beams = total.shape
        while True:
            k = increments.shape[1]
            scores = (total[:, :, None] + increments.reshape(b, beams, k)).flatten(1)
            kept = min(width, scores.shape[1])
            total, index = scores.topk(kept, dim=1, largest=False)  # (b, kept)
            row = torch.arange(b, device=index.device)[:, None]
            state = state.pick((row * beams + index // k).flatten())
            state = state.append((index % k).flatten())
            beams = kept
            if state.done:
                break
            given = {n: v.repeat_interleave(beams, 0) for n, v in known.items()}
            increments, state = step(state, **given)
        value = state.value.reshape(b, beams, -1).transpose(0, 1)  # (beams, b, L)
    return value if b == rows else value.expand(-1, rows, -1)


def nbest_margin(
    plan: Plan, batch: Batch, m: float, cost: str | None, T: float, width: int
) -> tuple[Tensor, Tensor]:
    """Positive term and margin loss ``(B,)`` against the n best sequences of a beam."""
    name = plan.over[0]
    y = batch[name]
    known = plan.known(batch)
    positive = plan.view(**known, **{name: y})
    values = nbest(plan.view, name, known, y.shape[0], width)  # (n, B, L)
    differs = (values != y).sum(-1)  # (n, B)
    delta = (differs if cost == "hamming" else (differs > 0)).to(positive.dtype) * m

    def energy_of(value: Tensor) -> Tensor:
        return plan.view(**known, **{name: value})

    if T > 0:
        e = torch.stack([energy_of(v) for v in values])  # (n, B)
        gaps = torch.where(differs > 0, delta + positive - e, -torch.inf)
        gaps = torch.cat([torch.zeros_like(positive)[None], gaps])
        return positive, T * torch.logsumexp(gaps / T, 0)
    with torch.no_grad():
        e = torch.stack([energy_of(v) for v in values])
        worst = torch.where(differs > 0, delta - e, -torch.inf).argmax(0)  # (B,)
    rows = torch.arange(y.shape[0], device=y.device)
    rival = spread(values[worst, rows], y.shape[0])
    wrong = differs[worst, rows] > 0
    loss = functional.relu(delta[worst, rows] + positive - energy_of(rival))
    return positive, torch.where(wrong, loss, 0.0 * loss)
