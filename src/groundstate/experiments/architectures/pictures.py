"""What experiments with images share: digits on a canvas, a network by key, how many are right."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from groundstate.compute.random import Key
from groundstate.energy import ClassEnergy
from groundstate.experiments.neural.digits import Rows, digits
from groundstate.learn import learn
from groundstate.nn import init_


def digit_images(key: Key, train: int, side: int = 8) -> tuple[Rows, Rows]:
    """The digits as pictures ``(n, 1, side, side)`` in [0, 1]: rows to learn from, and the others."""
    return tuple(  # type: ignore[return-value]
        {"x": _sized(rows["x"].view(-1, 1, 8, 8), side), "y": rows["y"]}
        for rows in digits(key, train)
    )


def _sized(x: Tensor, side: int) -> Tensor:
    if side == 8:
        return x
    return interpolate(x, size=(side, side), mode="bilinear", align_corners=False)


def on_canvas(x: Tensor, side: int, at: Tensor) -> Tensor:
    """Pictures ``(n, 1, h, w)`` on an empty canvas, their corners at ``(n, 2)``."""
    out = x.new_zeros(len(x), 1, side, side)
    h, w = x.shape[-2:]
    rows = at[:, 0, None, None] + torch.arange(h)[:, None]
    columns = at[:, 1, None, None] + torch.arange(w)
    out[torch.arange(len(x))[:, None, None], 0, rows, columns] = x[:, 0]
    return out


def drawn(net: nn.Module, key: Key) -> nn.Module:
    """The network with weights that are a function of the key."""
    return init_(net, generator=key.torch())


def built(make: type[nn.Module] | object, *args: object, **settings: object) -> nn.Module:
    """A network made without touching the process-wide random stream."""
    with torch.random.fork_rng(devices=[]):
        made: nn.Module = make(*args, **settings)  # type: ignore[operator]
    return made


def trained(
    net: nn.Module, rows: Rows, classes: int, epochs: int, key: Key, **settings: object
) -> ClassEnergy:
    """Cross-entropy by mini-batches; the energy in evaluation mode."""
    energy = ClassEnergy(net, tuple(rows["x"].shape[1:]), classes)
    learn(energy, rows, epochs=epochs, seed=key.fold("order"), **settings)  # type: ignore[arg-type]
    energy.eval()
    return energy


@torch.no_grad()
def right(energy: ClassEnergy, rows: Rows) -> float:
    """Share of rows whose largest score is that of their label; a broken net is wrong."""
    scores = energy.scores(rows["x"])
    hit = (scores.argmax(1) == rows["y"]) & scores.isfinite().all(1)
    return float(hit.double().mean())
