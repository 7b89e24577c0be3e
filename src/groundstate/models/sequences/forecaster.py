"""The future of series by a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.compute.rows import Ragged
from groundstate.data.sequences.windows import Windows
from groundstate.energy.base import Energy
from groundstate.energy.networks.network import NetworkEnergy
from groundstate.errors import DataError
from groundstate.learn import NLL, Naive
from groundstate.learn.base import Rule
from groundstate.learn.solvers.networks.estimator import NetworkTraining
from groundstate.models import settings
from groundstate.models.networks.seeds import init_key
from groundstate.models.rows.making import make_network
from groundstate.models.rows.network import RowNetwork
from groundstate.models.sequences.forecaster_role import EnergyForecaster
from groundstate.models.traits import Traits
from groundstate.nn.heads.base import DistributionHead, Head
from groundstate.nn.heads.forecast import NormalMixtureHead, QuantilesHead, ScaledHead
from groundstate.nn.recurrent.items import StandardizeItems
from groundstate.registry import models

HEADS = ("normal", "quantile", "mdn")
PATHS = 256  # drawn futures behind the bands of a recursive forecast


@models.register(family="sequences", task="forecasting", role="forecaster", auto=False)
class Forecaster(EnergyForecaster, RowNetwork):
    r"""The next items of a series, with bands, from a network that reads the last ones.

    .. math:: e(x, y) = \ell\bigl(f_\theta(x), y\bigr), \qquad x = (x_{t-c+1}, \dots, x_t), \quad
              y = (x_{t+1}, \dots, x_{t+h})

    with :math:`\ell = -\log p` of a normal distribution or a mixture of them for every number, or the
    loss of several quantiles. X is one series ``(T,)`` or ``(T, F)``, a list of them, or the path of a
    table with the columns time, id (for several) and the values. A window never reaches beyond its
    end; scales are those of the training windows; the held-out windows are the last of each series,
    and no window to learn from looks into them.

    Parameters
    ----------
    horizon : int, default=1
        h, items ahead.
    context : int, default=24
        c, items to look back at.
    network : str, module, class or function, default="gru"
        "gru", "lstm", "rnn", "tcn", "transformer", or what makes a module from ``(n, c, F)`` to
        ``(n, num_classes)``.
    strategy : "direct" or "recursive", default="direct"
        All items ahead at once; or one item ahead, again and again, for any number of steps, with bands
        from drawn futures.
    head : "normal", "quantile" or "mdn", default="normal"
        What the network gives for every number.
    n_components : int, default=3
        Of the mixtures of "mdn".
    target : int, str, list of them or None, default=None
        Columns that are forecast; the others are looked back at. None is all, or the column "target"
        where there is one.
    stride : int, default=1
        Items from a window to the next one.

    Attributes
    ----------
    energy_ : NetworkEnergy
    target_ : list of int
        The columns that are forecast.

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import Forecaster
    >>> x = 10 + np.sin(np.arange(200) / 3)
    >>> model = Forecaster(6, context=20, max_epochs=30, lr=0.01, random_state=0).fit(x)
    >>> made = model.forecast()
    >>> made.mean.shape, bool(np.abs(made.mean - 10 - np.sin(np.arange(200, 206) / 3)).max() < 0.3)
    ((6,), True)
    """

    traits = Traits(
        space={
            "context": settings.Whole(4, 48, log=True),
            "lr": settings.Real(1e-4, 3e-2, log=True),
            "network": settings.Choice("gru", "lstm", "tcn", "transformer"),
        }
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "horizon": [Interval(Integral, 1, None, closed="left")],
        "context": [Interval(Integral, 1, None, closed="left")],
        "stride": [Interval(Integral, 1, None, closed="left")],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "strategy": [StrOptions({"direct", "recursive"})],
        "head": [StrOptions(set(HEADS))],
        "target": [Integral, str, list, tuple, None],
    }
    _store_private: ClassVar[tuple[str, ...]] = ("_form", "_moments", "_epochs")
    horizon: int
    context: int
    strategy: str
    head: str
    n_components: int
    target: int | str | Sequence[int | str] | None
    stride: int
    target_: list[int]
    energy_: Any
    _parts: Tensor | None
    _entry: StandardizeItems

    def __init__(
        self, horizon: int = 1, context: int = 24, network: Any = "gru", network_params: Any = None,
        *, strategy: str = "direct", head: str = "normal", n_components: int = 3, target: Any = None,
        stride: int = 1, max_epochs: int = 100, batch_size: int = 32, optimizer: Any = "adamw",
        lr: float = 3e-3, weight_decay: float = 1e-2, val_fraction: float = 0.1,
        patience: int | None = 10, schedule: Any = None, clip_norm: float | None = 1.0,
        precision: str = "auto", compile: Any = False, warm_start: bool = False, verbose: Any = False,
        random_state: Any = None, device: Any = None, callbacks: Any = None,
    ) -> None:  # fmt: skip
        self._keep(locals())

    # --- windows -------------------------------------------------------------------------

    def _reach(self) -> tuple[int, int, int]:
        return self.context, self.horizon, self.stride

    def _ahead(self) -> int:
        return 1 if self.strategy == "recursive" else self.horizon

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        self.__dict__.pop("target_", None)
        return super()._checked(X, y)

    def _pairs(self, made: Windows) -> tuple[Tensor, Tensor]:
        if not hasattr(self, "target_"):
            self.target_ = self._columns()
            self._parts = self._split(made)
        return made.past.contiguous(), self._forecast_part(made.future).flatten(1)

    def _forecast_part(self, future: Tensor) -> Tensor:
        return future[..., self.target_]

    def _columns(self) -> list[int]:
        """Numbers of the columns that are forecast."""
        names = [str(n) for n in getattr(self, "feature_names_in_", ())]
        given: Any = self.target
        if given is None:
            found = [names.index("target")] if "target" in names else [*range(self.n_features_in_)]
        else:
            wanted = [given] if isinstance(given, int | str) else list(given)
            unknown = [w for w in wanted if isinstance(w, str) and w not in names]
            if unknown:
                known = ", ".join(names) or "columns without names"
                raise DataError(f"there is no column {unknown[0]!r}; there are {known}")
            found = [names.index(w) if isinstance(w, str) else int(w) for w in wanted]
        if any(not 0 <= c < self.n_features_in_ for c in found) or len(set(found)) != len(found):
            raise DataError(
                f"target={given!r} must name different columns of the {self.n_features_in_} of X"
            )
        if self.strategy == "recursive" and len(found) < self.n_features_in_:
            raise DataError(
                "a recursive forecast goes on from what it forecast, so that all columns must be "
                "targets; use strategy='direct'"
            )
        return found

    def _split(self, made: Windows) -> Tensor | None:
        """0 for windows to learn from, 1 for the last ones of each series, 2 for those between, whose
        futures would overlap."""
        if not self._held_out or self._partial:
            return None
        counts = torch.bincount(made.row)
        first = counts.cumsum(0) - counts
        at = torch.arange(len(made.row), device=made.row.device) - first[made.row]
        left = counts[made.row] - at  # windows to the end of the series, this one included
        watched = (self._held_out * counts).round().long()[made.row]
        between = -(-(self._ahead() - 1) // self.stride)
        parts = torch.where(left <= watched, 1, torch.where(left <= watched + between, 2, 0))
        parts[(watched == 0)] = 0
        learns = torch.zeros_like(counts).index_add(0, made.row, (parts == 0).long())
        parts[(learns == 0)[made.row]] = 0  # a series too short to hold out from
        return parts if bool((parts == 1).any()) else None

    # --- the energy ----------------------------------------------------------------------

    def _learn_preparation(self, X: Any, y: Any, weight: Tensor | None) -> None:
        own = (
            torch.ones(len(X), dtype=torch.float64, device=X.device)
            if weight is None
            else weight.double()
        )
        if self._parts is not None:
            own = own * (self._parts.to(X.device) == 0)
        kept = own > 0
        n, c, wide = X[kept].shape
        rows = Ragged(X[kept].reshape(n * c, wide), torch.arange(n + 1, device=X.device) * c)
        self._entry = StandardizeItems(wide).to(X.device, torch.float64).fit_rows(rows, own[kept])

    def _sizes(self, X: Any, y: Any) -> dict[str, Any]:
        outputs = self._head(y.shape[1]).n_outputs
        return {"in_features": X.shape[2], "num_classes": outputs, "out_features": outputs}

    def _head(self, m: int) -> Head:
        if self.head == "quantile":
            return QuantilesHead(m)
        return (
            NormalMixtureHead(m, self.n_components)
            if self.head == "mdn"
            else DistributionHead("normal", m)
        )

    def _made(self, X: Any, y: Any) -> nn.Module:
        key = init_key(self.random_state).fold("init")
        given = self.network_params or {}
        return make_network(self.network, self._sizes(X, y), given, "sequence", key)

    def _energy_of(self, net: nn.Module, X: Any, y: Any) -> Energy:
        entry = self.__dict__.pop("_entry")
        head = ScaledHead(self._head(y.shape[1])).to(X.device, torch.float64)
        times = y.shape[1] // len(self.target_)
        head.set(entry.mean[self.target_].repeat(times), entry.scale[self.target_].repeat(times))
        body = nn.Sequential(entry.to(X.dtype), net.to(X.device, X.dtype))
        return NetworkEnergy(X.shape[1:], head.to(X.dtype), body)

    def _loss(self, energy: Energy) -> Rule:
        return NLL() if self.head != "quantile" else Naive()

    @property
    def network_(self) -> nn.Module:
        net: Any = self.energy_.net
        return net[1]

    def _training(self, rule: Rule, total: float) -> NetworkTraining:
        parts = self.__dict__.pop("_parts", None)
        held = self._held_out if parts is not None else 0.0
        return replace(super()._training(rule, total), parts=parts, held_out=held, stratify=False)

    # --- the future ----------------------------------------------------------------------

    def _future(
        self, past: Tensor, steps: int, level: float | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        wide = len(self.target_)
        if self.strategy == "recursive":
            return self._repeated(past, steps, level)
        if steps > self.horizon:
            raise ValueError(
                f"a direct forecast reaches {self.horizon} steps, asked for {steps}; fit with a larger "
                "horizon or strategy='recursive'"
            )
        head = self.energy_.head
        raw = self._in_chunks(self.energy_.net, past)
        parts = (
            (head.mean(raw),) * 3 if level is None else (head.mean(raw), *head.interval(raw, level))
        )
        mean, low, high = (p.view(len(past), self.horizon, wide)[:, :steps] for p in parts)
        return mean, torch.minimum(low, mean), torch.maximum(high, mean)

    def _repeated(
        self, past: Tensor, steps: int, level: float | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Means fed back give the mean, drawn items fed back the band."""
        head, net = self.energy_.head, self.energy_.net
        state, means = past, []
        for _ in range(steps):
            new = head.mean(self._in_chunks(net, state))  # (n, F)
            state = torch.cat([state[:, 1:], new[:, None]], 1)
            means.append(new)
        mean = torch.stack(means, 1)
        if level is None:
            return mean, mean, mean
        generator = Key.of(0).fold("futures").torch(past.device)
        tail = torch.tensor(
            [(1 - level) / 2, (1 + level) / 2], dtype=past.dtype, device=past.device
        )
        paths, bands = past.repeat_interleave(PATHS, 0), []
        for _ in range(steps):
            drawn = head.sample(self._in_chunks(net, paths, 4096), generator)
            paths = torch.cat([paths[:, 1:], drawn[:, None]], 1)
            bands.append(drawn.view(len(past), PATHS, -1).quantile(tail, 1))  # (2, n, F)
        low, high = torch.stack(bands, 2)
        return mean, torch.minimum(low, mean), torch.maximum(high, mean)
