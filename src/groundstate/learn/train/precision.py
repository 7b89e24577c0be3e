"""Number formats of a training step: autocast, loss scaling, and what they may skip."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.foreign.torch import unscale_, update_scale_
from groundstate.learn.train.optimizers import Update

PRECISIONS = ("auto", "32", "tf32", "bf16", "fp16")
_HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def resolved(name: str, device: torch.device, dtype: torch.dtype) -> str:
    """What "auto" stands for: bf16 products of float32 networks on a GPU, float32 elsewhere.

    >>> [resolved("auto", torch.device(place), torch.float32) for place in ("cuda", "cpu")]
    ['bf16', '32']
    """
    if name != "auto":
        return name
    return "bf16" if device.type == "cuda" and dtype == torch.float32 else "32"


class Scaler(torch.amp.GradScaler):
    """Loss scaling that counts, on the device, the steps it skipped because of overflow."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device.type)
        self.skipped = torch.zeros((), device=device)
        self.one = torch.ones((), device=device)

    @torch.no_grad()
    def advance(self, update: Update) -> None:
        """Step the optimiser on scaled gradients, unless they overflow; then choose the next scale."""
        grads, scale, tracker = update.gradients(), self._scale, self._growth_tracker
        # gradients that were unscaled for clipping, and the first step, are left to torch
        if grads is None or scale is None or tracker is None or self._per_optimizer_states:
            self.step(update.optimizer)
            self.update()
            update.remember()
            return
        found = torch.zeros_like(self.skipped)
        unscale_(grads, found, self.one)
        update.apply(scale, found)
        update_scale_(
            scale, tracker, found,
            self._growth_factor, self._backoff_factor, self._growth_interval,
        )  # fmt: skip
        self.skipped += found

    def update(self, new_scale: float | Tensor | None = None) -> None:
        for state in self._per_optimizer_states.values():
            for found in state["found_inf_per_device"].values():  # 0 or 1
                self.skipped += found.to(self.skipped.device)
        super().update(new_scale)


class Precision:
    r"""How a step computes: in float32, in TF32 products, or in half precision under autocast.

    θ and the optimiser stay in float32; autocast takes losses, norms and sums in float32 as well.
    With ``"fp16"`` the loss is scaled, gradients are unscaled before clipping, and a step whose
    gradients overflow is skipped and counted.

    Parameters
    ----------
    name : one of ``PRECISIONS``; "auto" is that of :func:`resolved`
    device, dtype : where the step runs, and the format of θ

    Examples
    --------
    >>> with Precision("bf16", torch.device("cpu")).autocast():
    ...     (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
    torch.bfloat16
    """

    def __init__(self, name: str, device: torch.device, dtype: torch.dtype = torch.float32) -> None:
        self.name, self.device = resolved(name, device, dtype), device
        self.half = _HALVES.get(self.name)
        self.scaler = Scaler(device) if self.name == "fp16" else None

    def autocast(self) -> AbstractContextManager[Any]:
        """The context of a forward pass."""
        if self.half is None:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.half)

    @contextmanager
    def products(self) -> Iterator[None]:
        """The context of a run: TF32 matrix products where asked for, put back afterwards."""
        if self.name != "tf32" or self.device.type != "cuda":
            yield
            return
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)

    @property
    def skipped(self) -> int:
        """Steps skipped because of overflow so far; reading it waits for the device."""
        return 0 if self.scaler is None else int(self.scaler.skipped)

    def state(self) -> dict[str, Any] | None:
        if self.scaler is None:
            return None
        return {"scaler": self.scaler.state_dict(), "skipped": self.skipped}

    def load(self, state: dict[str, Any] | None) -> None:
        if self.scaler is not None and state is not None:
            self.scaler.load_state_dict(state["scaler"])
            self.scaler.skipped = torch.full_like(self.scaler.skipped, state["skipped"])
