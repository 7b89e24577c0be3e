r"""What an error of a denoiser at level t counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from groundstate.math.diffusion.parametrise import PredictionType, check_prediction_type
from groundstate.math.diffusion.schedule import NoiseSchedule

Weighting = Literal["simple", "vlb", "min_snr", "snr"] | Callable[[Tensor, NoiseSchedule], Tensor]
WEIGHTINGS = ("simple", "vlb", "min_snr", "snr")


def loss_weights(
    schedule: NoiseSchedule,
    weighting: Weighting = "simple",
    prediction_type: PredictionType = "epsilon",
    *,
    gamma: float = 5.0,
) -> Tensor:
    r"""Weight of :math:`\|\text{target} - \text{prediction}\|^2` at t = 1..T, ``(T,)`` in float64.

    On the error of x₀ the weights are :math:`\tfrac12(\text{SNR}_{t-1} - \text{SNR}_t)` for "vlb",
    :math:`\min(\text{SNR}, \gamma)` for "min_snr" and SNR for "snr"; the same error in another
    parametrisation is larger or smaller by a known factor, which the weight takes up:
    :math:`(1-\bar\alpha)/\bar\alpha` for ε, :math:`(1-\bar\alpha)^2/\bar\alpha` for the score and
    :math:`1-\bar\alpha` for v. So "snr" is the plain loss of ε. "simple" is 1 whatever is predicted.

    Parameters
    ----------
    schedule : the ``NoiseSchedule``
    weighting : "simple", "vlb", "min_snr", "snr", or a function of t ``(T,)`` and the schedule
    prediction_type : of the denoiser
    gamma : of "min_snr" (Hang et al. 2023)

    Notes
    -----
    At t = 1 the bound holds no KL but :math:`-\log p(x_0\mid x_1)`; there "vlb" takes the normal density
    around :math:`\hat x_0` with the posterior variance of t = 2, :math:`1/(2\tilde\beta_2)`. These are
    the weights of the T terms one by one; who draws one t multiplies by T.

    Examples
    --------
    >>> loss_weights(NoiseSchedule("cosine", 4), "vlb", "sample")[1:]
    tensor([2.2804, 0.4035, 0.0842], dtype=torch.float64)
    """
    check_prediction_type(prediction_type)
    levels = torch.arange(1, schedule.n_steps + 1)
    if callable(weighting):
        own = torch.as_tensor(weighting(levels, schedule)).double()
        if own.shape != levels.shape or not bool((own >= 0).all()):
            raise ValueError(
                f"a weighting gives weights of at least 0 of shape ({len(levels)},), got {own}"
            )
        return own
    if weighting == "simple":
        return torch.ones(schedule.n_steps, dtype=torch.float64)
    snr, bar = schedule.snr, schedule.alpha_bars
    if weighting == "vlb":
        first = 0.5 / schedule.posterior_variances[1:2] if len(snr) > 1 else 0.5 / schedule.betas
        clean = torch.cat([first, 0.5 * (snr[:-1] - snr[1:])])
    elif weighting == "min_snr":
        clean = snr.clamp(max=gamma)
    elif weighting == "snr":
        clean = snr
    else:
        raise ValueError(
            f"weighting must be one of {', '.join(WEIGHTINGS)} or a function, got {weighting!r}"
        )
    factor: Any = {
        "sample": torch.ones_like(bar),
        "epsilon": 1 / snr,
        "score": (1 - bar) / snr,
        "v_prediction": 1 - bar,
    }[prediction_type]
    return clean * factor
