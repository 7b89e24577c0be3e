r"""What is wrong with a training run, in words, with numbers and advice."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from torch import Tensor, nn

from groundstate.errors import Unsupported
from groundstate.learn.base import History, Rule
from groundstate.learn.callbacks.held_out import evaluating
from groundstate.learn.diagnose.probe import DEAD, EXPLODING, VANISHING, Signals, probe
from groundstate.learn.diagnose.sharpness import sharpness

GAP = 0.2  # held-out loss above training loss, relative to the loss to be explained
RISE = 0.1  # held-out loss above its own minimum
LEFT = 0.8  # of the first loss that is left when nothing was learned
WORSE = 2.0  # last loss over the lowest
STILL = 1e-3  # improvement in the last third of the run, relative to all improvement
FALLING = 0.05  # improvement in the last tenth, relative to all improvement
WOBBLE = 0.4  # share of epochs in which the loss rises
SCALES = 100.0  # largest over smallest spread of the inputs
OFFSET = 10.0  # mean of an input in units of its spread
SATURATION = 0.5
SLOW = 0.01  # lr as a share of 2/L


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    Attributes
    ----------
    name : short name, e.g. "overfitting"
    message : what was seen, in a sentence
    number, threshold : what was measured and where it begins to be bad
    advice : one change to try
    """

    name: str
    message: str
    number: float
    threshold: float
    advice: str

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.message} ({self.number:.3g}, threshold {self.threshold:.3g}); "
            f"{self.advice}"
        )


@dataclass(frozen=True)
class Diagnosis:
    """All findings; empty when nothing is wrong.

    Attributes
    ----------
    findings : tuple of ``Finding``
    signals : ``Signals`` of the network, when there was one to look at
    largest_rate : 2/L, the largest stable rate of plain gradient descent, when it was measured
    """

    findings: tuple[Finding, ...]
    signals: Signals | None = None
    largest_rate: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.findings)

    def __bool__(self) -> bool:
        return bool(self.findings)

    def __getitem__(self, name: str) -> Finding:
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(f"{name!r} was not found; found were {', '.join(self.names) or 'no faults'}")

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings)) or "nothing is wrong"


def diagnose(
    result: Any = None,
    *,
    energy: nn.Module | None = None,
    data: Mapping[str, Tensor] | Tensor | None = None,
    rule: Rule | Callable[[Tensor], Tensor] | None = None,
    lr: float | None = None,
    validation: list[float] | None = None,
    baseline: float | None = None,
) -> Diagnosis:
    r"""Say what is wrong with a run or a network, with a number, a threshold and advice.

    Found are: divergence, a plateau, underfitting, overfitting, a learning rate that is too high or
    too low (from the curve, and for plain descent from :math:`2/L`), inputs of very different
    scales, dead and saturated units, vanishing and exploding gradients.

    Parameters
    ----------
    result : ``History``, anything with ``history`` or ``history_``, a fitted estimator, or a module
    energy : the network or energy to look at, with
    data : a batch of its inputs
    rule : rule of an energy, or loss of a module's output
    lr : rate of plain gradient descent to be compared with 2/L; needs ``energy``, ``data``, ``rule``
    validation : held-out losses by epoch; taken from the history when early stopping left them
    baseline : loss of knowing nothing; the first training loss by default

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> from groundstate.learn import History
    >>> falling = History(objective=[1.0, 0.5, 0.3, 0.2, 0.1, 0.05], n_iter=6)
    >>> report = diagnose(falling, validation=[1.0, 0.7, 0.6, 0.65, 0.8, 0.9])
    >>> report.names
    ('overfitting',)
    >>> print(report)  # doctest: +ELLIPSIS
    overfitting: the held-out loss rises while the training loss falls ...
    """
    if isinstance(result, nn.Module):
        result, energy = None, energy or result
    history = _history(result)
    if energy is None and result is not None:
        found = getattr(result, "energy_", None)
        energy = found if isinstance(found, nn.Module) else None
    if history is None and energy is None:
        raise Unsupported(
            f"diagnose needs a History, a fitted estimator or a network, got "
            f"{type(result).__name__}; pass the result of fit, or energy= and data="
        )
    findings: list[Finding] = []
    if history is not None:
        findings += _curve(history, validation, baseline)
    signals, largest = None, None
    if energy is not None and data is not None:
        findings += _inputs(data)
        with evaluating(energy):
            signals = probe(energy, _moderate(data), rule)
            findings += _network(signals)
            if rule is not None:
                sharp = sharpness(energy, data, rule)
                largest = 2 / sharp if sharp > 0 else math.inf
                findings += [] if lr is None else _rate(lr, largest)
    return Diagnosis(tuple(findings), signals, largest)


def _history(result: Any) -> History | None:
    for candidate in (result, *(getattr(result, n, None) for n in ("history", "history_"))):
        if isinstance(candidate, History):
            return candidate
    return None


def _epochs(history: History) -> list[float]:
    """The objective by epoch: the mean over its steps."""
    values, n = history.objective, max(1, history.n_iter)
    if len(values) <= n or len(values) % n:
        return values
    k = len(values) // n
    return [math.fsum(values[i : i + k]) / k for i in range(0, len(values), k)]


# --- the curve ---------------------------------------------------------------------------------


def _curve(
    history: History, validation: list[float] | None, baseline: float | None
) -> list[Finding]:
    train = _epochs(history)
    held = validation or history.extra.get("validation") or history.extra.get("val_loss") or []
    if not train:
        return []
    first, last = train[0] if baseline is None else baseline, train[-1]
    if not all(map(math.isfinite, train)) or last - min(train) > (WORSE - 1) * abs(min(train)):
        number = last / min(train) if math.isfinite(last) and min(train) > 0 else math.inf
        return [
            Finding(
                "diverging", "the loss grows instead of falling", number, WORSE,
                "divide the learning rate by 10, or clip gradients",
            )
        ]  # fmt: skip
    scale = max(abs(first), 1e-12)
    left = last / scale
    gap = (held[-1] - last) / scale if held else math.nan
    rise = (held[-1] - min(held)) / max(abs(min(held)), 1e-12) if held else math.nan
    over = bool(held) and (gap > GAP or rise > RISE) and held[-1] > last
    # a run that overfits must not be advised to train longer
    found = [f for f in _shape(train, history.stop) if not (over and f.name.endswith("low"))]
    if over:
        what = "the held-out loss rises while the training loss falls"
        number, threshold = rise, RISE
        if not rise > RISE:
            what, number, threshold = "the held-out loss lies above the training loss", gap, GAP
        found.append(
            Finding(
                "overfitting", what, number, threshold,
                "stop early, add a penalty, dropout or noise, or get more data",
            )
        )  # fmt: skip
    elif left > LEFT and (not held or held[-1] / scale > LEFT):
        found.append(
            Finding(
                "underfitting", "hardly anything of the first loss has been learned", left, LEFT,
                "use a larger network, less penalty, or a higher learning rate",
            )
        )  # fmt: skip
    return found


def _shape(train: list[float], stop: str) -> list[Finding]:
    n, fell = len(train), train[0] - min(train)
    if n < 6 or fell <= 0:
        return []
    rises = sum(b > a for a, b in pairwise(train)) / (n - 1)
    if rises > WOBBLE:
        return [
            Finding(
                "learning rate too high", "the loss rises in many epochs", rises, WOBBLE,
                "divide the learning rate by 3, or let it fall (schedule='cosine')",
            )
        ]  # fmt: skip
    tail = min(train[: -max(1, n // 10)]) - train[-1]
    if n >= 10 and tail / fell > FALLING and stop in ("", "max_epochs"):
        return [
            Finding(
                "learning rate too low", "the loss still falls steadily at the end", tail / fell,
                FALLING, "train longer, or multiply the learning rate by 3",
            )
        ]  # fmt: skip
    last_third = min(train[: n - n // 3]) - min(train[n - n // 3 :])
    if last_third / fell < STILL and n >= 12:
        return [
            Finding(
                "plateau", "the loss stands still in the last third of the run", last_third / fell,
                STILL, "stop earlier, or lower the learning rate there (schedule='plateau')",
            )
        ]  # fmt: skip
    return []


# --- the network -------------------------------------------------------------------------------


def _inputs(data: Mapping[str, Tensor] | Tensor) -> list[Finding]:
    x = data if isinstance(data, Tensor) else data.get("x")
    if x is None or not x.is_floating_point() or x.ndim != 2 or len(x) < 2:
        return []
    x = x.detach().double()
    spread, mean = x.std(0), x.mean(0).abs()
    moving = spread > 0
    if not bool(moving.any()):
        return []
    spread, mean = spread[moving], mean[moving]
    scale = float(spread.max() / spread.min())
    offset = float((mean / spread).max())
    overall = max(float(spread.max()), 1 / float(spread.max()))
    advice = "standardise the inputs to mean 0 and spread 1"
    if scale > SCALES:
        what = "the spreads of the inputs differ"
        return [Finding("unscaled inputs", what, scale, SCALES, advice)]
    if offset > OFFSET:
        what = "an input lies far from zero, in units of its spread"
        return [Finding("unscaled inputs", what, offset, OFFSET, advice)]
    if overall > SCALES:
        what = "the spread of the inputs is far from 1"
        return [Finding("unscaled inputs", what, overall, SCALES, advice)]
    return []


def _network(signals: Signals) -> list[Finding]:
    found = []
    dead = max(signals.layers, key=lambda row: row.dead)
    if dead.dead > DEAD:
        found.append(
            Finding(
                "dead units", f"units of {dead.name} are zero on every row", dead.dead, DEAD,
                "lower the learning rate, or use a leaky activation",
            )
        )  # fmt: skip
    stuck = max(signals.layers, key=lambda row: row.saturated)
    if stuck.saturated > SATURATION:
        found.append(
            Finding(
                "saturated units", f"outputs of {stuck.name} sit where the slope is nearly zero",
                stuck.saturated, SATURATION, "scale the inputs, or start from smaller weights",
            )
        )  # fmt: skip
    if signals.vanishing < VANISHING and dead.dead <= DEAD:
        found.append(
            Finding(
                "vanishing gradients", "the first layers get almost no gradient",
                signals.vanishing, VANISHING,
                "use rectifiers with He initialisation, residual layers or normalisation",
            )
        )  # fmt: skip
    if signals.exploding > EXPLODING:
        found.append(
            Finding(
                "exploding gradients", "gradients grow on their way back", signals.exploding,
                EXPLODING, "start from smaller weights, normalise, or clip gradients",
            )
        )  # fmt: skip
    return found


def _rate(lr: float, largest: float) -> list[Finding]:
    if lr > largest:
        return [
            Finding(
                "learning rate too high", f"plain descent is stable up to 2/L = {largest:.3g}",
                lr / largest, 1.0, f"use at most lr={largest / 2:.2g}",
            )
        ]  # fmt: skip
    if lr < SLOW * largest:
        return [
            Finding(
                "learning rate too low", f"plain descent is stable up to 2/L = {largest:.3g}",
                lr / largest, SLOW, f"use about lr={largest / 2:.2g}",
            )
        ]  # fmt: skip
    return []


def _moderate(data: Any, rows: int = 512) -> Any:
    if isinstance(data, Tensor):
        return data[:rows]
    return {k: v[:rows] for k, v in data.items()}
