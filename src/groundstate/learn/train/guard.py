"""What stops a run that cannot go on, in one sentence that names the cause."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.rows import Rows, part
from groundstate.energy.base import Energy, shapes_of
from groundstate.energy.spaces import Finite
from groundstate.errors import DataError, ShapeError
from groundstate.learn.base import Batch

GROWTH = 1e6  # an objective this many times above its start will not come back
_SHOWN = 8  # row numbers named in a message


def not_finite(
    value: float, step: int, epoch: int, rows: Tensor | None, lr: float, saved: Any
) -> FloatingPointError:
    """The loss of a step is NaN or infinite."""
    return FloatingPointError(
        f"the loss became {value} in step {step} of epoch {epoch}{_rows(rows)}; lower lr={lr}, "
        f"set clip_norm=1.0, or scale the inputs{_kept(saved)}"
    )


def theta_not_finite(names: Sequence[str], step: int, epoch: int, saved: Any) -> FloatingPointError:
    """The step made a parameter NaN or infinite, though its loss was finite."""
    return FloatingPointError(
        f"{', '.join(names[:3])} became NaN or infinite by step {step} of epoch {epoch}; lower lr, "
        f"set clip_norm=1.0, or scale the inputs{_kept(saved)}"
    )


def check_progress(first: float, now: float, epoch: int, lr: float, saved: Any) -> None:
    """Refuse an objective that has left its start for good."""
    if now > GROWTH * max(1.0, abs(first)):
        raise FloatingPointError(
            f"training diverges: the objective rose from {first:.6g} to {now:.6g} by epoch {epoch}; "
            f"lower lr={lr}, set clip_norm=1.0, or scale the inputs{_kept(saved)}"
        )


def bad_parameters(named: Sequence[tuple[str, Tensor]]) -> list[str]:
    """Names of parameters that are not finite; one synchronisation when all are."""
    if not named:
        return []
    largest = torch.stack([p.detach().abs().amax().double() for _, p in named if p.numel()])
    if math.isfinite(float(largest.max())):
        return []
    return [n for n, p in named if not bool(torch.isfinite(p.detach()).all())]


def check_labels(energy: Energy, batch: Batch) -> None:
    """Refuse labels that are no value of their variable; −1 is a missing one."""
    for name, v in batch.items():
        space = energy.spaces.get(name)
        if not isinstance(space, Finite) or v.is_floating_point() or not v.numel():
            continue
        low, high = (int(end) for end in torch.aminmax(v))
        if low < -1 or high >= space.n:
            wrong = low if low < -1 else high
            row = int((v == wrong).reshape(len(v), -1).any(1).nonzero()[0])
            raise DataError(
                f"{name!r} is {wrong} in row {row}, but {type(energy).__name__} knows the "
                f"{space.n} values 0 to {space.n - 1}; encode the labels as 0, 1, ... or make the "
                "energy larger"
            )


@torch.no_grad()
def check_outputs(energy: Energy, batch: Batch) -> None:
    """Refuse a network that gives another number of scores than there are values to score."""
    for name, space in energy.spaces.items():
        declared = energy.declared("table", name)
        if declared is None or name not in batch or not isinstance(space, Finite):
            continue
        given = {k: part(v, 0, 2) for k, v in batch.items() if k != name and _plain(v)}
        if len(given) + 1 < len(batch) or not given or {*energy.spaces} - {name, *given}:
            continue  # a table given what is hidden says nothing before that is known
        training = energy.training
        energy.eval()
        try:
            table: Tensor = declared(**given)
        except RuntimeError as error:
            raise ShapeError(
                f"the network of {type(energy).__name__} cannot take {shapes_of(given)}: "
                f"{str(error).splitlines()[0]}; check its input size"
            ) from error
        finally:
            energy.train(training)
        rows = len(next(iter(given.values())))
        if table.ndim != 2 or table.shape[0] not in (rows, 1) or table.shape[1] != space.n:
            raise ShapeError(
                f"the network of {type(energy).__name__} returned {tuple(table.shape)} for "
                f"{rows} rows, expected ({rows}, {space.n}): one score for each of the {space.n} "
                f"values of {name!r}; change its last layer"
            )


def _plain(rows: Rows) -> bool:
    return not isinstance(rows, Tensor) or rows.layout == torch.strided


def too_few_to_normalise(
    error: Exception, batch: Batch, size: int | None, drops: bool = True
) -> ValueError | None:
    """torch's complaint of a batch norm with one value per channel, in words of a run; else None."""
    if not str(error).startswith("Expected more than 1 value per channel when training"):
        return None
    rows = len(next(iter(batch.values())))
    way = "drop_last=True to leave out a last batch that is too small, or " if drops else ""
    return ValueError(
        f"a batch of {rows} row{'s' if rows != 1 else ''} gives a batch norm one value per channel, "
        f"which has no variance; pass {way}another batch_size than {size}"
    )


def _rows(rows: Tensor | None) -> str:
    if rows is None:
        return ""
    shown = ", ".join(map(str, rows[:_SHOWN].tolist()))
    return f" (rows {shown}{', ...' if len(rows) > _SHOWN else ''})"


def _kept(saved: Any) -> str:
    return "" if saved is None else f"; the last good checkpoint is {saved}"
