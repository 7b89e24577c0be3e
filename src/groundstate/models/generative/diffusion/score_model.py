r"""Score models: the slope of an energy, learned without its normaliser."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.energy.networks.score import ScoreEnergy
from groundstate.infer import sample as draw
from groundstate.infer.sampling.langevin import Langevin
from groundstate.learn.base import Rule
from groundstate.learn.rules.score import DenoisingScoreMatching, ScoreMatching
from groundstate.models.generative.network import NetworkGenerator
from groundstate.models.generative.shapes import as_given
from groundstate.registry import models

LOSSES = ("denoise", "exact", "hutchinson", "sliced")


class Ladder:
    """Draws noise levels of a ladder, evenly."""

    def __init__(self, levels: Any) -> None:
        self.levels = torch.as_tensor(np.asarray(levels, np.float64))

    def __call__(self, n: int, generator: Any) -> Tensor:
        device = generator.device if generator is not None else None
        index = torch.randint(len(self.levels), (n,), generator=generator, device=device)
        return self.levels.to(index.device)[index]


@models.register(family="diffusion", task="generation", role="generator")
class ScoreModel(NetworkGenerator):
    r"""An energy whose slope is the score, :math:`-\nabla e = \nabla\log p`, learned by score matching.

    .. math:: L = \tfrac12\|\sigma\nabla e_\sigma(x + \sigma\varepsilon) - \varepsilon\|^2

    With one noise level the slope is right where rows with that noise are, and anything elsewhere; with
    a ladder of levels large noise covers the gaps, and sampling walks down from it (annealed Langevin
    dynamics, steps in proportion to :math:`\sigma^2`).

    Parameters
    ----------
    noise : {"ladder", "single"}, default="ladder"
    loss : {"denoise", "exact", "hutchinson", "sliced"}, default="denoise"
        Of a single level: with noise, or the implicit loss :math:`\tfrac12\|\nabla e\|^2 - \Delta e` with
        its Laplacian by all second derivatives, random signs or random directions.
    sigma_min, sigma_max : float, default=0.05 and 5.0
        Ends of the ladder, in units of the rows' spread; a single level is ``sigma_min``.
    n_levels : int, default=10
        Levels of the ladder, geometric.
    n_steps : int, default=100
        Langevin steps at each level of the ladder; ten times as many of a single one.
    step_size : float, default=0.1
        :math:`\eta/\sigma^2`, of every level.

    Attributes
    ----------
    sigmas_ : (n_levels,) array, the ladder from above
    energy_ : ScoreEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import ScoreModel
    >>> X = np.random.default_rng(0).normal(3.0, 0.5, (200, 1))
    >>> model = ScoreModel(hidden_layer_sizes=(16,), max_iter=5, random_state=0).fit(X)
    >>> model.sample(2, random_state=0).shape, model.log_prob_kind_
    ((2, 1), 'unnormalised')
    """

    category_code: ClassVar[str] = "onehot"
    log_prob_kind = "unnormalised"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "noise": [StrOptions({"single", "ladder"})],
        "loss": [StrOptions(set(LOSSES))],
        "sigma_min": [Interval(Real, 0, None, closed="neither")],
        "sigma_max": [Interval(Real, 0, None, closed="neither")],
        "n_levels": [Interval(Integral, 2, None, closed="left")],
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "step_size": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        noise: str = "ladder",
        *,
        loss: str = "denoise",
        sigma_min: float = 0.05,
        sigma_max: float = 5.0,
        n_levels: int = 10,
        n_steps: int = 100,
        step_size: float = 0.1,
        hidden_layer_sizes: Any = (128, 64),
        activation: str = "silu",
        solver: Any = "adam",
        learning_rate_init: float = 2e-3,
        batch_size: Any = 128,
        max_iter: int = 200,
        alpha: float = 0.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: float = 20,
        tol: float = 1e-4,
        warm_start: bool = False,
        scale: str | None = "standard",
        dequantize: bool = False,
        ema_decay: float | None = None,
        verbose: Any = False,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    @property
    def sigmas_(self) -> Any:
        """The noise levels from above, ``(n_levels,)``."""
        if self.noise == "single":
            return np.array([self.sigma_min])
        return np.geomspace(self.sigma_max, self.sigma_min, self.n_levels)

    def _energy_of(self, x: Tensor, y: Tensor | None, key: Key) -> ScoreEnergy:  # type: ignore[override]
        if self.noise == "ladder" and not self.sigma_min < self.sigma_max:
            raise ValueError(
                f"a ladder needs sigma_min < sigma_max, got {self.sigma_min} and {self.sigma_max}"
            )
        if self.noise == "ladder" and self.loss != "denoise":
            raise ValueError(
                f"a ladder is learned by loss='denoise', got {self.loss!r}; use noise='single'"
            )
        q = 0 if y is None else y.shape[1]
        net = self._hidden if self.network is None else self.network
        return ScoreEnergy(
            x.shape[1], net, q, self.sigma_min, self.activation, generator=key.torch()
        ).to(x.device, x.dtype)

    def _loss(self, energy: Energy) -> Rule:
        if self.loss != "denoise":
            method: Any = self.loss
            return ScoreMatching(method, over="x")
        sigma: Any = self.sigma_min if self.noise == "single" else Ladder(self.sigmas_)
        return DenoisingScoreMatching(sigma, over="x")

    def _log_prob(self, x: Tensor, y: Tensor | None) -> Tensor:
        return -self.energy_(x=x) if y is None else -self.energy_(x=x, y=y)

    def score_function(self, X: Any, sigma: float | None = None, y: Any = None) -> Any:
        r""":math:`\nabla\log p` of the rows smoothed by noise of level ``sigma``, ``(n_samples, D)``,
        in coded units (those of ``scale``)."""
        x, home = self._rows(X)
        level = x.new_full((len(x),), self.sigma_min if sigma is None else sigma)
        energy: Any = self.energy_
        return home.give(energy.score(x, level, self._contexts(y, len(x))).detach())

    def denoise(self, X: Any, sigma: float, y: Any = None) -> Any:
        r"""Tweedie's :math:`x + \sigma^2\nabla\log p_\sigma(x)`, the mean of the rows before noise of level
        ``sigma`` (in units of ``scale``), of the shape of X."""
        x, _ = self._rows(X)
        level = x.new_full((len(x),), float(sigma))
        energy: Any = self.energy_
        clean = x + sigma**2 * energy.score(x, level, self._contexts(y, len(x))).detach()
        return as_given(self.coding_.decode(clean), self)

    def _draw(
        self, n: int, y: Tensor | None, T: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        levels = [float(s) for s in self.sigmas_]
        many = self.n_steps if len(levels) > 1 else 10 * self.n_steps
        schedule = [(s, self.step_size * s * s, many) for s in levels]
        device, dtype = self.energy_.placement()
        wide = (1 + levels[0] ** 2) ** 0.5
        shape = (n, int(self.energy_.spaces["x"].shape[0]))
        start = wide * torch.randn(shape, generator=generator, device=device, dtype=dtype)
        method = Langevin(step_size=1.0, adjusted=False, schedule=schedule)
        given = {} if y is None else {"y": y}
        x = draw(
            self.energy_, "x", given, method=method, init={"x": start}, T=T, generator=generator
        )["x"][0]
        return x, None
