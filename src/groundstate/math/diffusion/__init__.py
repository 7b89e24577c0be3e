"""Diffusion: noise schedules, the forward process, what a denoiser predicts, bounds."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.math.diffusion.bound import Elbo as Elbo
    from groundstate.math.diffusion.bound import discretised as discretised
    from groundstate.math.diffusion.bound import draws_by_step as draws_by_step
    from groundstate.math.diffusion.bound import elbo as elbo
    from groundstate.math.diffusion.continuous import ContinuousSchedule as ContinuousSchedule
    from groundstate.math.diffusion.forward import NormalStep as NormalStep
    from groundstate.math.diffusion.forward import add_noise as add_noise
    from groundstate.math.diffusion.forward import forward_kernel as forward_kernel
    from groundstate.math.diffusion.forward import posterior as posterior
    from groundstate.math.diffusion.parametrise import PREDICTION_TYPES as PREDICTION_TYPES
    from groundstate.math.diffusion.parametrise import PredictionType as PredictionType
    from groundstate.math.diffusion.parametrise import convert as convert
    from groundstate.math.diffusion.parametrise import reverse_mean as reverse_mean
    from groundstate.math.diffusion.schedule import NoiseSchedule as NoiseSchedule
    from groundstate.math.diffusion.schedule import karras_sigmas as karras_sigmas
    from groundstate.math.diffusion.tweedie import smoothed_score as smoothed_score
    from groundstate.math.diffusion.tweedie import tweedie as tweedie
    from groundstate.math.diffusion.weights import WEIGHTINGS as WEIGHTINGS
    from groundstate.math.diffusion.weights import Weighting as Weighting
    from groundstate.math.diffusion.weights import loss_weights as loss_weights

lazy(__name__)
