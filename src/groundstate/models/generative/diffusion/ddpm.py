r"""Denoising diffusion: rows from noise, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.energy.networks.denoiser import DenoiserEnergy
from groundstate.infer.sampling.diffusion import (
    SAMPLERS,
    ClassifierFree,
    DiffusionSampler,
    Steps,
)
from groundstate.learn.base import Rule
from groundstate.learn.rules.denoising.diffusion import Diffusion
from groundstate.math.diffusion import (
    PREDICTION_TYPES,
    WEIGHTINGS,
    Elbo,
    NoiseSchedule,
    discretised,
    draws_by_step,
    elbo,
)
from groundstate.math.diffusion.schedule import KINDS
from groundstate.models.generative.diffusion.noise_code import NoiseCode
from groundstate.models.generative.shapes import as_given
from groundstate.models.rows.making import make_network
from groundstate.nn.denoise import DiTDenoiser, MLPDenoiser, TokenDenoiser, UNetDenoiser
from groundstate.registry import models

NETWORKS = {
    "mlp": MLPDenoiser, "unet": UNetDenoiser, "dit": DiTDenoiser, "tokens": TokenDenoiser,
}  # fmt: skip


@models.register(family="diffusion", task="generation", role="generator")
class DDPM(NoiseCode):
    r"""Denoising diffusion: a network learns the noise in noisy rows (Ho et al. 2020).

    .. math:: \min_\theta E\,w_t\|\epsilon - \epsilon_\theta(x_t, t)\|^2, \qquad
        x_t = \sqrt{\bar\alpha_t}\,x + \sqrt{1-\bar\alpha_t}\,\epsilon

    Rows come out of noise by :math:`x_{t-1} = (x_t - \tfrac{1-\alpha_t}{\sqrt{1-\bar\alpha_t}}\,
    \epsilon_\theta)/\sqrt{\alpha_t} + \sigma_t z`.

    The energy of a row is that of the smoothed data at a small noise level, with
    :math:`-\nabla e = s_\theta`. ``score_samples`` is the bound of form B
    with reverse steps of variance β, or the learned one. Columns of categories are
    diffused as bits ±1 and read by the largest. With y the network also learns without it, so that
    ``sample(y=..., guidance_scale=w)`` can push samples towards their label.

    Parameters
    ----------
    n_steps : int
        Noise levels T.
    schedule : "linear", "scaled_linear", "cosine", "sigmoid", array of β or ``NoiseSchedule``
        "linear" is made for T = 1000; for a smaller T take "cosine" or larger β.
    variance : "fixed_small", "fixed_large" or "learned"
        Of the reverse steps: that of the posterior, β, or between them.
    prediction_type : "epsilon", "sample", "score" or "v_prediction"
        What the network predicts.
    weighting : "simple", "vlb", "min_snr", "snr" or callable
        Of the noise levels in the loss.
    sampler : "ddpm", "ddim", "heun" or "dpmpp_2m"
        How rows are drawn; the last three need 10 to 50 steps.
    sample_steps : int or None
        Levels that are visited; None visits all with "ddpm", 50 with the others.
    eta : float
        Share of fresh noise in "ddim".
    clip_denoised : bool
        Keep the predicted clean rows inside the range of the training rows, where their mean always is.
    guidance_scale : float
        1 samples :math:`p(x\mid y)`, more exaggerates the label, 0 ignores it.
    label_dropout : float
        Share of rows that are learned without their label.
    network : "mlp", "unet", "dit", "tokens", module, class or function, or None
        The denoiser ``net(x, t, y)``; None is an MLP for tables and a U-Net for images. "tokens" looks at y
        as a sequence of ``network_params={"tokens": L}`` vectors by cross-attention.
    network_params : dict or None
        Further arguments of its constructor.
    compile : bool or str
        Run the network through ``torch.compile`` while it learns.

    Attributes
    ----------
    noise_schedule_ : NoiseSchedule
    range_ : (2, D) array, least and largest value of every coded column

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal([3.0, -1.0], [1.0, 0.1], (200, 2))
    >>> model = DDPM(50, "cosine", max_iter=100, random_state=0).fit(X)
    >>> drawn = model.sample(500, random_state=0)
    >>> bool(np.abs(drawn.mean(0) - [3.0, -1.0]).max() < 0.3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "schedule": [StrOptions(set(KINDS)), "array-like", NoiseSchedule],
        "variance": [StrOptions({"fixed_small", "fixed_large", "learned"})],
        "prediction_type": [StrOptions(set(PREDICTION_TYPES))],
        "weighting": [StrOptions(set(WEIGHTINGS)), callable],
        "sampler": [StrOptions(set(SAMPLERS))],
        "sample_steps": [Interval(Integral, 1, None, closed="left"), None],
        "eta": [Interval(Real, 0, 1, closed="both")],
        "clip_denoised": ["boolean"],
        "guidance_scale": [Interval(Real, 0, None, closed="left")],
        "label_dropout": [Interval(Real, 0, 1, closed="left")],
        "compile": ["boolean", str],
    }
    category_code: ClassVar[str] = "onehot"
    log_prob_kind: Any = "bound"
    energy_: DenoiserEnergy
    _sampling: Any = None

    def __init__(
        self,
        n_steps: int = 1000,
        schedule: Any = "linear",
        variance: str = "fixed_small",
        *,
        prediction_type: Any = "epsilon",
        weighting: Any = "simple",
        sampler: str = "ddpm",
        sample_steps: int | None = None,
        eta: float = 0.0,
        clip_denoised: bool = True,
        guidance_scale: float = 1.0,
        label_dropout: float = 0.1,
        network: Any = None,
        network_params: dict[str, Any] | None = None,
        hidden_layer_sizes: Any = (128, 64),
        activation: str = "silu",
        solver: Any = "adam",
        learning_rate_init: float = 1e-3,
        batch_size: int = 128,
        max_iter: int = 200,
        alpha: float = 0.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: float = float("inf"),
        tol: float = 1e-4,
        warm_start: bool = False,
        scale: str | None = "standard",
        dequantize: bool = False,
        ema_decay: float | None = 0.999,
        compile: bool | str = False,
        verbose: bool = False,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    # --- parametrise and learn -----------------------------------------------------------

    @property
    def _rate_schedule(self) -> Any:
        return None

    def _learn_coding(self, X: Tensor, weight: Tensor | None) -> None:
        super()._learn_coding(X, weight)
        bits = self._bits
        if bits.any():  # noise is centred, so bits are ±1 whatever the scale of the numbers
            mean, scale = (np.where(bits, 0.5, v) for v in (self.coding_.mean, self.coding_.scale))
            self.coding_ = replace(self.coding_, mean=mean, scale=scale)

    @property
    def _bits(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which coded columns are bits of categories."""
        return np.repeat(self.coding_.levels > 0, self.coding_.widths)

    def _energy_of(self, x: Tensor, y: Tensor | None, key: Key) -> Energy:  # type: ignore[override]
        schedule = NoiseSchedule.of(self.schedule, self._n_levels)
        self.range_ = torch.stack([x.amin(0), x.amax(0)]).double().cpu().numpy()
        d, q = x.shape[1], 0 if y is None else y.shape[1]
        images = len(self.event_shape_) > 1
        network = self.network if self.network is not None else ("unet" if images else "mlp")
        if isinstance(network, str):
            if network not in NETWORKS:
                raise ValueError(
                    f"network must be one of {', '.join(NETWORKS)}, a module, a class or a function, "
                    f"got {network!r}"
                )
            network = NETWORKS[network]
        sizes = {
            "d": d, "q": q, "shape": self.event_shape_, "hidden": self._hidden,
            "activation": self.activation, "n_steps": schedule.n_steps,
            "outputs": 2 if self.variance == "learned" else 1,
        }  # fmt: skip
        net = make_network(network, sizes, self.network_params or {}, "table", key)
        net = net.to(x.device, x.dtype)
        return DenoiserEnergy(net, d, schedule, q, self.prediction_type, self.variance)

    @property
    def _n_levels(self) -> int | None:
        return self.n_steps if isinstance(self.schedule, str) else None

    def _loss(self, energy: Energy) -> Rule:
        return Diffusion(self.weighting, label_dropout=self.label_dropout)

    @property
    def noise_schedule_(self) -> NoiseSchedule:
        return self.energy_.noise_schedule

    # --- density -------------------------------------------------------------------------

    def _bound(self, x: Tensor, y: Tensor | None, form: Any = "B", n_draws: Any = None) -> Elbo:
        bits, decoder = self._bits, None
        # of the fixed variances β fits a density at small noise, where most of the bound is
        variance = "learned" if self.variance == "learned" else "fixed_large"
        if bits.any():
            width = torch.from_numpy(np.where(bits, 2.0, 0.0))
            decoder = discretised(width, -1.0, 1.0)
        return elbo(
            self.energy_.predict, x, self.noise_schedule_, form,
            prediction_type=self.prediction_type, variance=variance,
            given=() if y is None else (y,), common=True, decoder=decoder,
            n_draws=n_draws or (draws_by_step(self.noise_schedule_) if form == "B" else 1),
            generator=Key.of(0).fold("bound").torch(x.device),
        )  # fmt: skip

    def _log_prob(self, x: Tensor, y: Tensor | None) -> Tensor:
        # categories have probabilities, so the scale of their bits is none of the density's
        own = float(np.log(self.coding_.scale[self._bits]).sum())
        return self._bound(x, y).value + own

    def elbo(self, X: Any, y: Any = None, form: str = "B", n_draws: int | None = None) -> Elbo:
        """The bound on the log density of coded rows with its terms, in nats; see ``diffusion.elbo``.

        Every row meets the same noise, so that its bound does not depend on the others. Without
        ``n_draws`` form B takes one draw for most levels and 16 where its terms vary most.
        """
        x, home = self._rows(X)
        c = self._contexts_of(y, x)
        with answering(self.energy_, x):
            found = self._bound(x, c, form, n_draws)
        parts = (found.value, found.reconstruction, found.prior, found.steps, found.bits_per_dim)
        return Elbo(*(home.give(v) for v in parts))

    # --- draws ---------------------------------------------------------------------------

    def sample(
        self,
        n_samples: int = 1,
        y: Any = None,
        *,
        T: float = 1.0,
        return_latent: bool = False,
        return_path: bool = False,
        guidance_scale: float | None = None,
        guidance_rescale: float = 0.0,
        guidance_interval: tuple[float, float] | None = None,
        sampler: str | None = None,
        sample_steps: int | None = None,
        random_state: Any = None,
    ) -> Any:
        """Draw rows, ``(n_samples, *event_shape_)``.

        Parameters
        ----------
        n_samples, y, random_state : see ``GenerativeEstimator.sample``
        T : temperature of all noise
        return_latent : also give the noise each row started from
        return_path : also give the rows after every step, ``(K + 1, n_samples, *event_shape_)``
        guidance_scale : w of this call instead of the model's
        guidance_rescale : share by which the guided prediction gets back the spread of the plain one
        guidance_interval : lowest and highest level t between which it guides
        sampler, sample_steps : of this call instead of the model's
        """
        check_is_fitted(self, "energy_")
        settings = (sampler, sample_steps, T, guidance_scale, guidance_rescale, guidance_interval)
        film: list[list[Tensor]] = []
        with self._with_sampler(settings, film if return_path else None):
            rows = super().sample(
                n_samples, y, T=T, return_latent=return_latent, random_state=random_state
            )
        if not return_path:
            return rows
        states = [torch.cat(parts) for parts in zip(*film, strict=True)]
        path = [as_given(self.coding_.decode(x), self) for x in states]
        stacked = torch.stack(path) if isinstance(path[0], Tensor) else np.stack(path)
        return (*rows, stacked) if return_latent else (rows, stacked)

    @contextmanager
    def _with_sampler(self, settings: tuple[Any, ...], film: Any = None) -> Iterator[None]:
        """All blocks of a call share one sampler, which on a GPU records its step once."""
        self._sampling = (self._sampler(*settings), film)
        try:
            yield
        finally:
            self._sampling = None

    def _sampler(
        self, sampler: str | None = None, steps: int | None = None, T: float = 1.0,
        guidance: float | None = None, rescale: float = 0.0, interval: Any = None,
    ) -> DiffusionSampler:  # fmt: skip
        name = sampler or self.sampler
        if name not in SAMPLERS:
            raise ValueError(f"sampler must be one of {', '.join(SAMPLERS)}, got {name!r}")
        table = self._steps(name, steps or self.sample_steps)
        table = replace(table, fresh=table.fresh * T**0.5)
        w = self.guidance_scale if guidance is None else guidance
        predict: Any = self.energy_.predict
        if self.energy_.q and (w != 1 or rescale or interval):
            if self.variance == "learned":
                predict = self._mean_of_prediction
            predict = ClassifierFree(predict, w, rescale=rescale, interval=interval)
        return DiffusionSampler(predict, table, self.prediction_type, clip=self._clip)

    def _steps(self, name: str, n: int | None) -> Steps:
        if name == "ddpm":
            return SAMPLERS[name](self.noise_schedule_, n, variance=self.variance)
        schedule = self._seen_schedule
        if n is not None and n > self.noise_schedule_.n_steps:
            raise ValueError(
                f"sample_steps={n}, and there are {self.noise_schedule_.n_steps} noise levels"
            )
        n = min(n or 50, schedule.n_steps)
        return SAMPLERS[name](schedule, n, **({"eta": self.eta} if name == "ddim" else {}))

    def _mean_of_prediction(self, x: Tensor, t: Tensor, y: Tensor) -> Tensor:
        return self.energy_.predict(x, t, y)[:, : self.energy_.d]

    @property
    def _clip(self) -> tuple[Tensor, Tensor] | None:
        """Range of clean rows: the mean of x₀ given anything lies inside that of the data."""
        if not self.clip_denoised:
            return None
        device, dtype = self.energy_.placement()
        low, high = torch.from_numpy(self.range_).to(device, dtype)
        return low, high

    def _draw(
        self, n: int, y: Tensor | None, T: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        device, dtype = self.energy_.placement()
        z = torch.randn(n, self.energy_.d, generator=generator, device=device, dtype=dtype)
        z = z * T**0.5
        sampler, film = self._sampling or (self._sampler(T=T), None)
        given = () if y is None else (y,)
        if film is None:
            return sampler(z, given, generator=generator), z
        x, states = sampler(z, given, generator=generator, path=True)
        film.append(states)
        return x, z
