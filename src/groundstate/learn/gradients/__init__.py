"""Gradients: backpropagation written out, checks, Jacobians, single examples, inputs."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.learn.gradients.backprop import Backprop as Backprop
    from groundstate.learn.gradients.backprop import backprop as backprop
    from groundstate.learn.gradients.check import GradientReport as GradientReport
    from groundstate.learn.gradients.check import gradcheck as gradcheck
    from groundstate.learn.gradients.inputs import Adapted as Adapted
    from groundstate.learn.gradients.inputs import adapt_input as adapt_input
    from groundstate.learn.gradients.inputs import saliency as saliency
    from groundstate.learn.gradients.modes import jacobian as jacobian
    from groundstate.learn.gradients.modes import jvp as jvp
    from groundstate.learn.gradients.modes import vjp as vjp
    from groundstate.learn.gradients.per_example import GradientNoise as GradientNoise
    from groundstate.learn.gradients.per_example import gradient_noise as gradient_noise
    from groundstate.learn.gradients.per_example import per_example_grads as per_example_grads

lazy(__name__)
