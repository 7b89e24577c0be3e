"""The checks of generators without a game: codes that say nothing, chains that ran away, few noise levels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtr

from groundstate.learn.diagnose.runs import Finding
from groundstate.models.diagnosis.checks import check
from groundstate.models.generative.energy.runaway import FAR, runaway_chains

F64 = NDArray[np.float64]
IDLE = 0.5  # of the units of a code
OVERLAP = 0.5  # of the draws at one noise level that the next one knows (Song & Ermon 2020)
MOST = 10_000  # noise levels that are advised


@check("active_units_", "coding_")
def posterior_collapse(model: Any, X: F64) -> Finding | None:
    """The share of the units of a code that are the same for all rows."""
    idle = float(1 - np.mean(model.active_units_))
    if idle <= IDLE:
        return None
    return Finding(
        "posterior collapse", "units of the code say nothing about the rows", idle, IDLE,
        "lower beta, let it rise with beta='linear:50', set free_bits=0.1, narrow the likelihood, or "
        "take fewer units",
    )  # fmt: skip


@check("rule_", "coding_")
def chains_ran_away(model: Any, X: F64) -> Finding | None:
    """How far the farthest negative chain is from the data, in units of the data's reach."""
    chains = getattr(getattr(model.rule_, "source", None), "chains", {}).get("x")
    if chains is None or not torch.is_floating_point(chains) or len(X) < 2:
        return None
    _, far = runaway_chains(chains.double().cpu().flatten(1), torch.from_numpy(X))
    if far <= FAR:
        return None
    return Finding(
        "diverging chains", "negative chains left the data: the energy is lower there", far, FAR,
        "lower the learning rate, penalise weights or energies, or take shorter steps of the chains",
    )  # fmt: skip


@check("sigmas_", "n_levels", "coding_")
def few_noise_levels(model: Any, X: F64) -> Finding | None:
    """The share of the draws at one noise level that are typical of the next."""
    sigmas, d = np.asarray(model.sigmas_, float), X.shape[1]
    if len(sigmas) < 2:
        return None
    share = _overlap(float(np.max(sigmas[:-1] / sigmas[1:])), d)
    if share >= OVERLAP:
        return None
    reach = float(sigmas[0] / sigmas[-1])
    enough = next(
        (n for n in range(2, MOST) if _overlap(reach ** (1 / (n - 1)), d) >= OVERLAP), MOST
    )
    return Finding(
        "too few noise levels", f"draws at one level are not known at the next in {d} columns", share,
        OVERLAP, f"take n_levels={enough}, or ScoreSDE, whose levels are continuous",
    )  # fmt: skip


def _overlap(ratio: float, d: int) -> float:
    """Mass that two Gaussian shells share whose radii differ by this factor, within three spreads."""
    gap = math.sqrt(2 * d) * (ratio - 1)
    return float(ndtr(gap + 3 * ratio) - ndtr(gap - 3 * ratio))
