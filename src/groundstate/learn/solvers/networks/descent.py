r"""An optimiser that is remembered: its rate can be moved while it runs, its state taken along."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor


@dataclass(eq=False)
class Descent:
    r"""Adam, AdamW or momentum for ``Stochastic(optimizer=...)``, with a rate that may change.

    ``sgd`` keeps the velocity :math:`v \leftarrow \mu v - \eta g` in units of θ, so that a new rate
    acts on new gradients only, and moves by v, or by :math:`\mu v - \eta g` (Nesterov).

    Parameters
    ----------
    kind : "adam", "adamw" or "sgd"
    momentum, nesterov : of "sgd"
    betas, eps : of "adam" and "adamw"
    decay : of "adamw", :math:`\theta \leftarrow (1 - \eta\lambda)\theta - \dots`
    undecayed : parameters without decay, by ``id``: biases and scales
    scale : factor on the rate of a parameter, by ``id``; those not named have 1
    state : of an earlier optimiser of the same parameters, to go on from

    Attributes
    ----------
    made : the optimiser of the last run

    Examples
    --------
    >>> make = Descent("sgd", momentum=0.9)
    >>> w = torch.nn.Parameter(torch.ones(1))
    >>> step = make([w], 0.1)
    >>> make.move(0.01)
    >>> make.rate
    0.01
    """

    kind: Literal["adam", "adamw", "sgd"] = "adam"
    momentum: float = 0.9
    nesterov: bool = True
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    scale: Mapping[int, float] = field(default_factory=dict)
    state: dict[str, Any] | None = None
    decay: float = 0.0
    undecayed: frozenset[int] = frozenset()
    made: torch.optim.Optimizer | None = field(default=None, init=False, repr=False)
    rate: float = field(default=0.0, init=False)

    @property
    def couples_decay(self) -> bool:
        """Whether ``weight_decay`` of a group is L2 in the gradient."""
        return self.kind != "adamw"

    def __call__(self, parameters: Sequence[Any], lr: float) -> torch.optim.Optimizer:
        self.rate = lr
        groups = self._groups(parameters, lr)
        make: Callable[..., torch.optim.Optimizer] = torch.optim.Adam
        options: dict[str, Any] = {"betas": self.betas, "eps": self.eps}
        if self.kind == "adamw":
            make, options = torch.optim.AdamW, {**options, "weight_decay": self.decay}
        if self.kind == "sgd":
            make = torch.optim.SGD
            nesterov = self.nesterov and self.momentum > 0
            options = {"momentum": self.momentum, "nesterov": nesterov}
        fused = all(p.device.type in ("cpu", "cuda") for g in groups for p in g["params"])
        self.made = make(groups, lr=lr, fused=fused, **options)
        if self.state is not None:
            self._load(self.made, self.state)
        return self.made

    def _groups(self, parameters: Sequence[Any], lr: float) -> list[dict[str, Any]]:
        """One group for each factor on the rate and each decay, in the order they are met in."""
        given: list[dict[str, Any]] = [
            g if isinstance(g, dict) else {"params": [g]} for g in parameters
        ]
        groups: dict[tuple[float, float], list[Tensor]] = {}
        for group in given:
            for p in group["params"]:
                decay = float(group.get("weight_decay", self.decay))
                decay = 0.0 if id(p) in self.undecayed else decay
                kind = float(self.scale.get(id(p), 1.0)), decay
                groups.setdefault(kind, []).append(p)
        return [
            {"params": own, "lr": lr * s, "scale": s, "weight_decay": decay}
            for (s, decay), own in groups.items()
        ]

    def move(self, rate: float) -> None:
        """Set the rate; what momentum has gathered keeps its length."""
        if self.made is None or rate == self.rate:
            return
        for group in self.made.param_groups:
            group["lr"] = rate * group.get("scale", 1.0)
            if self.kind == "sgd" and self.momentum > 0 and rate > 0:
                for p in group["params"]:
                    gathered = self.made.state[p].get("momentum_buffer")
                    if gathered is not None:
                        gathered.mul_(self.rate / rate)
        self.rate = rate

    def fade(self, factor: float) -> None:
        """Set the decay to this part of what it was at the start."""
        for group in () if self.made is None else self.made.param_groups:
            group["weight_decay"] = factor * group.setdefault("decay", group["weight_decay"])

    def packed(self) -> dict[str, Any] | None:
        """The state as tensors by name, to be stored or handed to the next run."""
        if self.made is None:
            return None
        inner = self.made.state_dict()["state"]
        return {
            "rate": self.rate,
            "moments": {str(i): {k: v for k, v in s.items() if v is not None}
                        for i, s in inner.items()},
        }  # fmt: skip

    def _load(self, optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
        own = optimizer.state_dict()
        moments = {int(i): dict(s) for i, s in state["moments"].items()}
        optimizer.load_state_dict({"state": moments, "param_groups": own["param_groups"]})
        rate, self.rate = float(state["rate"]), float(state["rate"])
        for group in optimizer.param_groups:
            group["lr"] = rate * group.get("scale", 1.0)
