"""Samplers of diffusions: tables of coefficients, one loop, guidance, missing cells, the way back."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.infer.sampling.diffusion.encode import encode as encode
    from groundstate.infer.sampling.diffusion.guidance import ClassifierFree as ClassifierFree
    from groundstate.infer.sampling.diffusion.guidance import ClassifierGuided as ClassifierGuided
    from groundstate.infer.sampling.diffusion.inpaint import inpaint as inpaint
    from groundstate.infer.sampling.diffusion.loop import DiffusionSampler as DiffusionSampler
    from groundstate.infer.sampling.diffusion.tables import SAMPLERS as SAMPLERS
    from groundstate.infer.sampling.diffusion.tables import Steps as Steps
    from groundstate.infer.sampling.diffusion.tables import ddim as ddim
    from groundstate.infer.sampling.diffusion.tables import ddpm as ddpm
    from groundstate.infer.sampling.diffusion.tables import dpmpp_2m as dpmpp_2m
    from groundstate.infer.sampling.diffusion.tables import heun as heun
    from groundstate.infer.sampling.diffusion.tables import timesteps as timesteps

lazy(__name__)
