"""Diffusion: noise schedules, the forward process, what a denoiser predicts, bounds."""

from __future__ import annotations

from groundstate.math.diffusion.bound import Elbo, discretised, draws_by_step, elbo
from groundstate.math.diffusion.continuous import ContinuousSchedule
from groundstate.math.diffusion.forward import NormalStep, add_noise, forward_kernel, posterior
from groundstate.math.diffusion.parametrise import (
    PREDICTION_TYPES,
    PredictionType,
    convert,
    reverse_mean,
)
from groundstate.math.diffusion.schedule import NoiseSchedule, karras_sigmas
from groundstate.math.diffusion.tweedie import smoothed_score, tweedie
from groundstate.math.diffusion.weights import WEIGHTINGS, Weighting, loss_weights

__all__ = [
    "PREDICTION_TYPES",
    "ContinuousSchedule",
    "Elbo",
    "NormalStep",
    "NoiseSchedule",
    "PredictionType",
    "WEIGHTINGS",
    "Weighting",
    "add_noise",
    "convert",
    "discretised",
    "draws_by_step",
    "elbo",
    "forward_kernel",
    "karras_sigmas",
    "loss_weights",
    "posterior",
    "reverse_mean",
    "smoothed_score",
    "tweedie",
]
