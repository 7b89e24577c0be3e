r"""The loss of a denoiser: squared error at a noise level, weighted."""

from __future__ import annotations

from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.learn.base import Reduction
from groundstate.learn.losses.contract import reduce
from groundstate.math.diffusion import NoiseSchedule, PredictionType, Weighting, loss_weights


def diffusion(
    pred: Tensor,
    target: Tensor,
    t: Tensor,
    schedule: NoiseSchedule,
    sample_weight: Tensor | None = None,
    reduction: Reduction = "mean",
    *,
    weighting: Weighting = "simple",
    prediction_type: PredictionType = "epsilon",
    gamma: float = 5.0,
) -> Tensor:
    r""":math:`\ell = w_t\,\|\text{target} - \text{prediction}\|^2`, summed over the coordinates of a row.

    With "vlb" the weights are those of the T terms of the bound, times T: the mean over uniform t is
    their sum.

    Parameters
    ----------
    pred, target : prediction of the denoiser, and what it should be, ``(B, ...)``
    t : levels ``(B,)``
    schedule : the ``NoiseSchedule``
    sample_weight : ``(B,)``
    reduction : "mean", "sum" or "none"
    weighting, prediction_type, gamma : see ``groundstate.diffusion.loss_weights``

    Examples
    --------
    >>> import torch
    >>> noise, t = torch.ones(2, 3), torch.tensor([1, 900])
    >>> diffusion(0 * noise, noise, t, NoiseSchedule(), reduction="none")
    tensor([3., 3.])
    """
    if pred.shape != target.shape or t.shape != pred.shape[:1]:
        raise ShapeError(
            "a prediction and its target have one shape and every row a level, got "
            f"{tuple(pred.shape)}, {tuple(target.shape)} and levels {tuple(t.shape)}"
        )
    table = term_weights(schedule, weighting, prediction_type, gamma).to(pred)
    return reduce(diffusion_rows(pred, target) * table[t - 1], sample_weight, reduction)


def diffusion_rows(pred: Tensor, target: Tensor) -> Tensor:
    return (pred - target).square().flatten(1).sum(1)


def term_weights(
    schedule: NoiseSchedule, weighting: Weighting, kind: PredictionType, gamma: float = 5.0
) -> Tensor:
    """Weights at t = 1..T, with the number of terms in those of the bound."""
    w = loss_weights(schedule, weighting, kind, gamma=gamma)
    return w * schedule.n_steps if weighting == "vlb" else w
