r"""Diffusion in the codes of an autoencoder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.errors import ShapeError, Unsupported
from groundstate.infer.sampling.diffusion import inpaint
from groundstate.math.diffusion.parametrise import convert
from groundstate.models.generative.autoencoders.vae import VAE
from groundstate.models.generative.autoencoders.vq_autoencoder import VQAutoencoder
from groundstate.models.generative.completion import impute, inferred_x
from groundstate.models.generative.diffusion.ddpm import DDPM
from groundstate.models.generative.filling import log_known_of_draws
from groundstate.models.generative.latent import LatentCode

KL = 1e-6  # weight of the divergence that keeps the codes of "kl" near the origin
FILL_STEPS = 50  # levels visited when missing cells are filled in
SEEN, CLIMB = 0.8, 60  # share of signal at which the most probable code is looked for, and steps
STEP = 0.01  # of differences
LEAST = 1e-4  # variance of a cell given its code, where the decoder is no distribution
PREFIT = (None, "autoencoder", "both")


class LatentDiffusion(MetaEstimatorMixin, BaseEstimator):
    r"""Diffusion in the codes of an autoencoder (Rombach et al. 2022): first
    :math:`z = f(x)/s,\; x \approx g(sz)`, then

    .. math:: \min_\theta E\|\epsilon - \epsilon_\theta(z_t, t)\|^2, \qquad
        z_t = \sqrt{\bar\alpha_t}\,z + \sqrt{1 - \bar\alpha_t}\,\epsilon,

    and a row is drawn as g of a drawn code. A step costs what the code is long, not the row; what the
    autoencoder loses is lost. The energy of a row is that of its code.

    Parameters
    ----------
    autoencoder : "kl", "vq" or an estimator with ``transform`` and ``inverse_transform``
        "kl" is ``VAE`` with a divergence of weight 1e-6, "vq" ``VQAutoencoder`` with 512 vectors.
    diffusion : generator or None, default=None
        What learns the codes: ``DDPM`` (the default), ``ScoreSDE``, ``FlowMatching``, any generator.
    n_components : int, default=8
        Length of the code of "kl" and "vq".
    prefit : None, "autoencoder" or "both"
        Stages that are given fitted and used as they are; others are cloned.
    random_state : int, Key or None
        For stages that have none of their own.

    Attributes
    ----------
    autoencoder_, diffusion_ : the fitted stages
    latent_scale_ : float, s: the standard deviation of all numbers of the training codes
    token_shape_ : (L, d) where y was a sequence of L tokens of d numbers for each row, else None

    Examples
    --------
    >>> from groundstate import DDPM, Autoencoder, LatentDiffusion
    >>> t = np.random.default_rng(0).uniform(0, 2 * np.pi, 300)
    >>> X = np.column_stack([np.cos(t), np.sin(t), np.cos(t), np.sin(t)])
    >>> first = Autoencoder(2, (16,), max_iter=60, learning_rate_init=0.01, random_state=0)
    >>> model = LatentDiffusion(first, DDPM(30, "cosine", max_iter=20, random_state=0)).fit(X)
    >>> model.sample(5, random_state=0).shape, round(float(model.transform(X).std()), 2)
    ((5, 4), 1.0)
    """

    log_prob_kind_ = "none"

    def __init__(
        self,
        autoencoder: Any = "kl",
        diffusion: Any = None,
        *,
        n_components: int = 8,
        prefit: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.autoencoder, self.diffusion = autoencoder, diffusion
        self.n_components, self.prefit = n_components, prefit
        self.random_state = random_state

    # --- learning ------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn both stages; y are labels, real columns, or tokens ``(n_samples, L, d)``, which the
        denoiser looks at by cross-attention."""
        if self.prefit not in PREFIT:
            raise ValueError(f"prefit must be None, 'autoencoder' or 'both', got {self.prefit!r}")
        if self.prefit is None:
            given = {} if sample_weight is None else {"sample_weight": sample_weight}
            self.autoencoder_ = self._first().fit(X, **given)
        else:
            check_is_fitted(self.autoencoder)
            self.autoencoder_ = self.autoencoder
        self.n_features_in_ = int(np.prod(np.shape(X)[1:]))
        if hasattr(self.autoencoder_, "feature_names_in_"):
            self.feature_names_in_ = self.autoencoder_.feature_names_in_
        codes = self._array(self.autoencoder_.transform(X))
        spread = float(codes.std())
        even = abs(spread - 1) < 1e-6 or not spread > 0  # stays as it is, to the bit
        self.latent_scale_ = 1.0 if even else spread
        self.token_shape_ = tuple(np.shape(y)[1:]) if np.ndim(y) == 3 else None
        if self.prefit == "both":
            check_is_fitted(self.diffusion)
            self.diffusion_ = self.diffusion
            return self
        second = self._seeded(DDPM() if self.diffusion is None else clone(self.diffusion))
        if self.token_shape_ is not None and getattr(second, "network", None) is None:
            second.set_params(network="tokens", network_params={"tokens": self.token_shape_[0]})
        self.diffusion_ = second.fit(codes / self.latent_scale_, self._flat(y), sample_weight)
        return self

    def _first(self) -> Any:
        if not isinstance(self.autoencoder, str):
            return self._seeded(clone(self.autoencoder))
        if self.autoencoder == "kl":
            return self._seeded(VAE(self.n_components, beta=KL))
        if self.autoencoder == "vq":
            return self._seeded(VQAutoencoder(self.n_components))
        raise ValueError(
            f"autoencoder must be 'kl', 'vq' or an estimator with transform and inverse_transform, got "
            f"{self.autoencoder!r}"
        )

    def _seeded(self, stage: Any) -> Any:
        settings = stage.get_params(deep=False)
        if settings.get("random_state", 0) is None:
            stage.set_params(random_state=self.random_state)
        return stage

    def _flat(self, y: Any) -> Any:
        """Tokens of each row one after the other."""
        if y is None or self.token_shape_ is None:
            return y
        given = np.asarray(y.cpu() if isinstance(y, Tensor) else y)
        given = given[None] if given.ndim == 2 else given
        if given.shape[1:] != self.token_shape_:
            raise ShapeError(
                f"y must be tokens {self.token_shape_} as in fit, or a sequence of such, got "
                f"{given.shape[1:]}"
            )
        return given.reshape(len(given), -1)

    @staticmethod
    def _array(Z: Any) -> Any:
        return np.asarray(Z.detach().cpu() if isinstance(Z, Tensor) else Z)

    # --- codes ---------------------------------------------------------------------------

    def transform(self, X: Any) -> Any:
        """Codes of standard deviation 1, ``(n_samples, k)``."""
        check_is_fitted(self, "diffusion_")
        return self.autoencoder_.transform(X) / self.latent_scale_

    def inverse_transform(self, Z: Any) -> Any:
        """Rows of codes."""
        check_is_fitted(self, "diffusion_")
        return self.autoencoder_.inverse_transform(Z * self.latent_scale_)

    def reconstruct(self, X: Any) -> Any:
        """Rows as the autoencoder remembers them."""
        return self.inverse_transform(self.transform(X))

    # --- draws and questions -------------------------------------------------------------

    def sample(
        self,
        n_samples: int = 1,
        y: Any = None,
        *,
        return_latent: bool = False,
        random_state: Any = None,
        **options: Any,
    ) -> Any:
        """Draw rows: a code, decoded.

        Parameters
        ----------
        n_samples, y, random_state : as for every generator; y also tokens ``(L, d)`` or ``(n, L, d)``
        return_latent : also give the codes
        options : of the second stage, such as ``guidance_scale`` or ``sample_steps``
        """
        check_is_fitted(self, "diffusion_")
        codes = self.diffusion_.sample(
            n_samples, self._flat(y), random_state=random_state, **options
        )
        rows = self.inverse_transform(codes)
        return (rows, codes) if return_latent else rows

    def energy(self, X: Any, y: Any = None) -> Any:
        """Energy of the code of each row, low where codes are frequent, ``(n_samples,)``."""
        return self.diffusion_.energy(self.transform(X), self._flat(y))

    def score_samples(self, X: Any, y: Any = None) -> Any:
        """There is none: a row that the decoder cannot make has no density."""
        raise Unsupported(
            "LatentDiffusion generates without a density (log_prob_kind_ is 'none'): score codes with "
            "diffusion_.score_samples(transform(X)), or judge draws with "
            "groundstate.evaluate.assess_generator"
        )

    impute = impute

    def infer(
        self,
        observed: Mapping[str, Any],
        free: str = "x",
        mode: Literal["min", "sample"] = "min",
        *,
        n: int = 1,
        T: float = 1.0,
        random_state: Any = None,
    ) -> Any:
        """Fill in the NaN of rows ``observed["x"]``, or draw rows of ``observed["y"]``.

        Parameters
        ----------
        observed, mode, n, T, random_state : see ``GenerativeEstimator.infer``
        free : "x"; the energy is that of codes, so that labels and codes have no answer here
        """
        if free != "x" or mode not in ("min", "sample") or (mode == "min" and "x" not in observed):
            raise Unsupported(
                "LatentDiffusion fills in cells of x (mode 'min' or 'sample') and draws rows ('sample'); "
                f"got free={free!r}, mode={mode!r}. Ask diffusion_ about codes"
            )
        return inferred_x(self, observed, mode, n, T, random_state)

    # --- missing cells: rows are the first stage's, y is the second's ------------------------

    @property
    def coding_(self) -> Any:
        return self.autoencoder_.coding_

    @property
    def event_shape_(self) -> tuple[int, ...]:
        return tuple(self.autoencoder_.event_shape_)

    @property
    def condition_(self) -> Any:
        return getattr(self.diffusion_, "condition_", None)

    @property
    def _shapes(self) -> Any:
        return self.autoencoder_._shapes

    @property
    def _levels(self) -> Any:
        return getattr(self.autoencoder_, "_levels", {})

    def _raw(self, X: Any, allow_nan: bool = False) -> Any:
        check_is_fitted(self, "diffusion_")
        if not isinstance(self.autoencoder_, LatentCode) or not isinstance(self.diffusion_, DDPM):
            raise Unsupported(
                "cells are filled in between an autoencoder of groundstate and DDPM, got "
                f"{type(self.autoencoder_).__name__} and {type(self.diffusion_).__name__}"
            )
        return self.autoencoder_._raw(X, allow_nan)

    def _blocks(self, x: Tensor, *others: Tensor | None) -> Any:
        return self.autoencoder_._blocks(x, *others)

    def _contexts(self, y: Any, n: int) -> Any:
        return self.diffusion_._contexts(self._flat(y), n)

    @property
    def _takes_no_label(self) -> bool:
        return bool(self.diffusion_._takes_no_label)

    def _log_known_by_y(
        self, x: Tensor, unknown: Tensor, contexts: Tensor, generator: torch.Generator
    ) -> Tensor:
        return log_known_of_draws(self, x, unknown, contexts, generator)

    def _draw(
        self, n: int, y: Tensor | None, T: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        """Coded rows ``(n, D)`` and their codes."""
        first, second = self.autoencoder_, self.diffusion_
        codes = second.coding_.decode(second._draw(n, y, T, generator)[0])
        z = codes.to(*first.energy_.placement()) * self.latent_scale_
        found: Tensor = first._rows_around(z, None, generator)
        return found, codes

    def _fill_mean(self, *given: Any) -> None:
        """The mean has no closed form: it is that of draws."""
        return None

    @torch.no_grad()
    def _fill(
        self, x: Tensor, unknown: Tensor, y: Tensor | None, how: str, generator: torch.Generator
    ) -> Tensor:
        r"""Coded rows with their unknown cells drawn, or ("minimise") as the draw's code is expected.

        Codes are denoised, and at every level the expected code goes to the nearest one whose row has
        the known cells, :math:`z + (J^\top J + \lambda I)^{-1}J^\top(x_k - g(z)_k)` with the
        decoder's derivatives J of the known cells; every level is done ten times, so that the rest of
        the code comes to fit.
        """
        first, second = self.autoencoder_, self.diffusion_
        noise = max(LEAST, first._cell_variance or 0.0)  # of a cell given its code
        schedule, home = second.noise_schedule_, first.energy_.placement()
        known = (~unknown).to(x)

        def rows(z: Tensor) -> Tensor:
            """Rows of coded codes, their mean."""
            codes = second.coding_.decode(z).to(*home) * self.latent_scale_
            found: Tensor = first._decode(codes, None)
            return found

        def slopes(z: Tensor, there: Tensor) -> Tensor:
            """Derivatives of the known cells, by differences: k decodings at once, ``(B, D, k)``."""
            k = z.shape[1]
            near = (z[:, None] + STEP * torch.eye(k).to(z)).flatten(0, 1)
            found = (rows(near).reshape(len(z), k, -1) - there[:, None]) / STEP
            return found.mT * known[..., None]

        def predict(z: Tensor, t: Tensor, *given: Tensor) -> Tensor:
            clean = convert(second._point(z, t, *given), z, t, schedule, second.prediction_type)
            a, s = schedule.signal_noise(t, z)
            loose = noise * (a.square() + s.square()) / s.square()  # against p(z | z_t)
            there = rows(clean)
            J, off = slopes(clean, there), ((x - there) * known)[..., None]
            eye = torch.eye(z.shape[1]).to(J)
            step = torch.linalg.solve(J.mT @ J + loose[..., None].to(J) * eye, J.mT @ off)
            return clean + step[..., 0].to(clean)

        device, dtype = second.energy_.placement()
        given = () if y is None else (y,)
        start = torch.zeros(len(x), second.energy_.d, device=device, dtype=dtype)
        z = inpaint(
            predict, start, torch.ones_like(start, dtype=torch.bool), schedule,
            min(FILL_STEPS, schedule.n_steps), "sample", given=given, generator=generator,
        )  # fmt: skip
        if how == "sample":
            codes = second.coding_.decode(z).to(*home) * self.latent_scale_
            found: Tensor = first._rows_around(codes, None, generator)
            return torch.where(unknown, found.to(x), x)
        level = torch.full((len(x),), int((schedule.alpha_bars > SEEN).sum().clamp_min(1)))
        level = level.to(device)
        signal = schedule.signal_noise(level, z)[0]
        for _ in range(CLIMB):  # mean shift on the density of codes with a little noise
            z = predict(signal * z, level, *given)
        return torch.where(unknown, rows(z).to(x), x)

    def to(self, device: Any) -> Self:
        """Move what was learned to a device."""
        for stage in (self.autoencoder_, self.diffusion_):
            if hasattr(stage, "to"):
                stage.to(torch.device(device) if device != "auto" else device)
        return self

    def save(self, path: str | Path) -> Path:
        """Write both stages to one file (JSON and safetensors, atomically)."""
        from groundstate.store import save

        check_is_fitted(self, "diffusion_")
        return save(self, path)
