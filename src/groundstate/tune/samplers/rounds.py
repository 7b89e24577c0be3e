"""Which finished trials a proposal may look at, so that it is the same for any number of workers.

Trials are proposed in rounds of a fixed size. What a trial of a round gets depends on the seed, its
place and the finished trials of earlier rounds, never on who else is running: one worker and eight
walk the same path. A place is the trial's number, or the ``slot`` that a repeated trial stands for.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

Floats = NDArray[np.float64]
SLOT = "groundstate:slot"
_PAUSE = 0.02


def slot_of(trial: FrozenTrial) -> int:
    """The place of a trial in its study."""
    return int(trial.user_attrs.get(SLOT, trial.number))


@dataclass(frozen=True)
class Known:
    """Trials of earlier rounds.

    Attributes
    ----------
    done : list of finished trials, by place
    pending : list of trials still running, by place
    """

    done: list[FrozenTrial]
    pending: list[FrozenTrial]


def known(study: Study, before: int, wait: float) -> Known:
    """Trials in places below ``before``; waits up to ``wait`` seconds until all are finished."""
    deadline = time.monotonic() + wait
    while True:
        trials = study._storage.get_all_trials(study._study_id, deepcopy=False)
        by_slot: dict[int, FrozenTrial] = {}
        for trial in trials:
            slot = slot_of(trial)
            if slot < before and (slot not in by_slot or _better(trial, by_slot[slot])):
                by_slot[slot] = trial
        ordered = [by_slot[slot] for slot in sorted(by_slot)]
        pending = [trial for trial in ordered if not trial.state.is_finished()]
        if not pending or time.monotonic() >= deadline:
            done = [trial for trial in ordered if trial.state.is_finished()]
            return Known(done, [trial for trial in pending if trial.params])
        time.sleep(_PAUSE)


def _better(new: FrozenTrial, old: FrozenTrial) -> bool:
    """A repeated trial counts instead of the one that was lost."""
    return old.state == TrialState.FAIL or (new.state.is_finished() and not old.state.is_finished())


def risks(study: Study, trials: list[FrozenTrial]) -> Floats:
    """Lower is better: values of complete trials, the last report of pruned ones.  # (n,)

    A failed trial, and one without a finite value, counts like the worst seen.
    """
    sign = -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0
    values = np.array([sign * _value(trial) for trial in trials], np.float64)
    finite = np.isfinite(values)
    worst = values[finite].max() if finite.any() else 0.0
    return np.where(finite, values, worst)


def standardise(r: Floats) -> Floats:
    r"""Risks as the surrogate sees them: mean 0, standard deviation 1, the worse half drawn in,

    .. math:: t = \frac{r - \mathrm{med}}{\mathrm{med} - \min}, \qquad
        y \propto t \;(t \le 0), \quad \log(1 + t) \;(t > 0) .

    A setting that diverges would otherwise set the scale, and those worth comparing look alike.
    The order stays, and so does the scale of the better half.

    Examples
    --------
    >>> import numpy as np
    >>> standardise(np.array([1.0, 2.0, 3.0, 1000.0])).round(2).tolist()
    [-0.79, -0.57, -0.36, 1.71]
    """
    middle, low = float(np.median(r)), float(r.min())
    if middle > low:
        t = (r - middle) / (middle - low)
        r = np.where(t > 0, np.log1p(np.maximum(t, 0.0)), t)
    spread = float(r.std())
    return (r - r.mean()) / (spread if spread > 0 else 1.0)


def _value(trial: FrozenTrial) -> float:
    if trial.state == TrialState.COMPLETE and trial.value is not None:
        return float(trial.value)
    if trial.state == TrialState.PRUNED and trial.intermediate_values:
        return float(trial.intermediate_values[max(trial.intermediate_values)])
    return float("nan")


def covered(trials: list[FrozenTrial], space: dict[str, Any]) -> list[FrozenTrial]:
    """Trials that have a value within range for every setting of the space."""
    return [
        trial
        for trial in trials
        if all(
            name in trial.params
            and (name not in trial.distributions or _fits(distribution, trial.params[name]))
            for name, distribution in space.items()
        )
    ]


def _fits(distribution: Any, value: Any) -> bool:
    try:
        return bool(distribution._contains(distribution.to_internal_repr(value)))
    except (TypeError, ValueError):
        return False
