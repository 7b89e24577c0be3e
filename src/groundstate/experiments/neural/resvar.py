r"""Skips add variances: He's initialisation doubles them per block, batch norm adds one."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.nn import Residual, dense_branch

WIDTH, BLOCKS, ROWS = 100, 10, 1000


def variances(key: Key, norm: str | None) -> list[float]:
    """Variance of the signal after 0, 1, …, 10 blocks in training mode."""
    blocks = [
        Residual(dense_branch(WIDTH, WIDTH, norm=norm, generator=own.torch()))
        for own in key.split(BLOCKS)
    ]
    h = torch.randn(ROWS, WIDTH, generator=key.fold("input").torch())
    found = [float(h.var())]
    with torch.no_grad():
        for block in nn.ModuleList(blocks).train():
            h = block(h)
            found.append(float(h.var()))
    return found


def batch_mates(key: Key) -> float:
    """How much the output of one row moves, over its size, when the other rows of its batch change."""
    net = Residual(dense_branch(WIDTH, WIDTH, norm="batch", generator=key.torch())).train()
    g = key.fold("rows").torch()
    one = torch.randn(1, WIDTH, generator=g)
    with torch.no_grad():
        a, b = (
            net(torch.cat([one, spread * torch.randn(31, WIDTH, generator=g)]))[0]
            for spread in (1.0, 2.0)
        )
    return float((a - b).norm() / a.norm())


@experiment("NEU-X-resvar", theme="neural", title="Residual variance doubles; with batch norm +1")
def resvar(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A branch with He's initialisation has the variance of its input, and the skip adds that once
    more: :math:`\operatorname{Var}h_k = 2^k`. When the branch begins with batch norm it starts from
    variance 1 wherever it stands, so a block adds 1 and :math:`\operatorname{Var}h_k = k + 1`; the price is
    that a row's output depends on the rows it shares a batch with.

    Width 100, ten blocks :math:`h + W\max(0, \cdot)`, 1,000 standard normal rows; means over 10 nets.
    """
    keys = Key.of(seed).split(3 if quick else 10)
    plain = np.mean([variances(key.fold("he"), None) for key in keys], axis=0)
    batch = np.mean([variances(key.fold("bn"), "batch") for key in keys], axis=0)
    k = np.arange(BLOCKS + 1)
    mates = float(np.mean([batch_mates(key.fold("mates")) for key in keys]))
    doubling, adding = plain / 2.0**k, batch / (k + 1)
    claims = [
        Claim.between("He: Var h_k / 2^k, least over blocks", float(doubling.min()), 0.7, 1.3),
        Claim.between("He: Var h_k / 2^k, largest over blocks", float(doubling.max()), 0.7, 1.3),
        Claim.close("batch norm: Var h_k / (k + 1), least", float(adding.min()), 1.0, tol=0.1),
        Claim.close("batch norm: Var h_k / (k + 1), largest", float(adding.max()), 1.0, tol=0.1),
        Claim.above("batch norm: change of a row with other batch mates, relative", mates, 0.05),
    ]
    numbers = {"He": plain.tolist(), "batch norm": batch.tolist(), "mates": mates}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.semilogy(k, plain, "o", color=COLOURS[0], label="He")
        left.semilogy(k, 2.0**k, color=COLOURS[5], linewidth=1, label="$2^k$")
        right.plot(k, batch, "o", color=COLOURS[2], label="batch norm")
        right.plot(k, k + 1, color=COLOURS[5], linewidth=1, label="$k + 1$")
        for ax in (left, right):
            ax.set(xlabel="blocks k", ylabel="variance of the signal")
            ax.legend()

    return Result(claims, numbers, draw)
