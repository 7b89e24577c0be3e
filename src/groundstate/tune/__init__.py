"""TUNE: the operators Learn and Tune, search spaces, samplers for Optuna studies, hypergradients.

Studies, storages and pruners are Optuna's; the samplers here work in anybody's study. Optuna is
optional: what needs it says so when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from groundstate.errors import Unsupported
from groundstate.tune.extra import MISSING
from groundstate.tune.samplers.improvement import (
    expected_improvement,
    log_expected_improvement,
    sampled_improvement,
)
from groundstate.tune.samplers.proposal import Proposal
from groundstate.tune.space import Choice, Real, Space, Whole
from groundstate.tune.spaces import default_space

if TYPE_CHECKING:
    from groundstate.tune.gradients.hypergradients import hypergradient as hypergradient
    from groundstate.tune.learn import Learn as Learn
    from groundstate.tune.samplers.cem import CEMSampler as CEMSampler
    from groundstate.tune.samplers.prior import PriorSampler as PriorSampler
    from groundstate.tune.samplers.smbo import SMBOSampler as SMBOSampler
    from groundstate.tune.tuning import Tune as Tune

_LAZY = {
    "CEMSampler": "groundstate.tune.samplers.cem",
    "Learn": "groundstate.tune.learn",
    "PriorSampler": "groundstate.tune.samplers.prior",
    "SMBOSampler": "groundstate.tune.samplers.smbo",
    "Tune": "groundstate.tune.tuning",
    "hypergradient": "groundstate.tune.gradients.hypergradients",
}

__all__ = [
    "CEMSampler",
    "Choice",
    "Learn",
    "PriorSampler",
    "Proposal",
    "Real",
    "SMBOSampler",
    "Space",
    "Tune",
    "Whole",
    "default_space",
    "expected_improvement",
    "hypergradient",
    "log_expected_improvement",
    "sampled_improvement",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(_LAZY[name]), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "optuna":
            raise Unsupported(MISSING) from error
        raise
    globals()[name] = value
    return value
