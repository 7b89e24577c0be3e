"""Gradients: backpropagation written out, checks, Jacobians, single examples, inputs."""

from groundstate.learn.gradients.backprop import Backprop, backprop
from groundstate.learn.gradients.check import GradientReport, gradcheck
from groundstate.learn.gradients.inputs import Adapted, adapt_input, saliency
from groundstate.learn.gradients.modes import jacobian, jvp, vjp
from groundstate.learn.gradients.per_example import (
    GradientNoise,
    gradient_noise,
    per_example_grads,
)

__all__ = [
    "Adapted",
    "Backprop",
    "GradientNoise",
    "GradientReport",
    "adapt_input",
    "backprop",
    "gradcheck",
    "gradient_noise",
    "jacobian",
    "jvp",
    "per_example_grads",
    "saliency",
    "vjp",
]
