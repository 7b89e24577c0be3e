"""Denoisers of diffusion models: plain modules ``net(x, t, y)`` of noisy rows, levels and contexts."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.nn.denoise.image import DiTDenoiser as DiTDenoiser
    from groundstate.nn.denoise.image import UNetDenoiser as UNetDenoiser
    from groundstate.nn.denoise.mlp import MLPDenoiser as MLPDenoiser
    from groundstate.nn.denoise.time import LevelEmbedding as LevelEmbedding
    from groundstate.nn.denoise.time import level_waves as level_waves
    from groundstate.nn.denoise.tokens import TokenDenoiser as TokenDenoiser

lazy(__name__)
