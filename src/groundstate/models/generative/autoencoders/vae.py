"""The variational autoencoder."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self, cast

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.energy import spaces
from groundstate.energy.base import Energy
from groundstate.energy.latent.deep.energy import DeepLatentEnergy
from groundstate.infer.variational.codes import CodeFamily
from groundstate.learn import NLL
from groundstate.learn.base import History, Rule
from groundstate.learn.posterior.guides import PerInstance
from groundstate.learn.rules.augmented import Dequantised
from groundstate.learn.rules.bounds.negative_elbo import NegativeELBO
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.generative.autoencoders.collapse import look_at_codes
from groundstate.models.generative.autoencoders.gibbs import gibbs, most_probable
from groundstate.models.generative.autoencoders.importance import (
    ImportanceReport,
    bounds,
    bounds_by_y,
    estimated,
    reported,
    summed,
)
from groundstate.models.generative.autoencoders.parts import (
    CONSTRAINTS,
    LISTING,
    make_family,
    make_likelihood,
    make_prior,
    networks,
    schedule,
)
from groundstate.models.generative.autoencoders.refining import Refinement, refined, refinement
from groundstate.models.generative.autoencoders.vae_drawing import drawing
from groundstate.models.generative.latent import LatentCode
from groundstate.models.generative.network import NetworkGenerator
from groundstate.models.networks.seeds import init_key
from groundstate.models.traits import Traits
from groundstate.models.validation import checked_count
from groundstate.nn.heads.likelihoods import Likelihood
from groundstate.nn.inspect.draw import Drawing
from groundstate.registry import models

MONITOR = 64  # draws of `elbo`


@models.register(family="autoencoders", task="generation", role="generator")
class VAE(LatentCode, NetworkGenerator):
    r"""A code with a known distribution, decoded by a network and read by another.

    .. math::
        e(x, z) = -\log p_\theta(x \mid z) - \log p(z), \qquad
        L = E_q[-\log p_\theta(x \mid z)] + \beta\,\mathrm{KL}(q_\phi(z \mid x)\,\|\,p(z))
        \ge -\log p(x)

    The encoder q belongs to the learning rule (``rule_``): rows are drawn without it, z from the prior
    and x from the likelihood. ``score_samples`` estimates log p by importance sampling with q as
    proposal; ``elbo`` is the bound that learning raises.

    Parameters
    ----------
    n_components : int, default=2
        Length of the code; of ``posterior="categorical"`` the number of its values.
    likelihood : str or Likelihood, default="gaussian"
        A name of ``groundstate.nn.heads.likelihoods``: "gaussian", "bernoulli" (rows in [0, 1]),
        "student_t", "discretized_logistic", "categorical", "squared". Columns of categories always
        get a softmax over their levels.
    posterior : str, default="diag"
        "fixed" (:math:`N(\mu, s^2I)`), "diag", "full" (a triangular factor), "iaf" (autoregressive
        maps), "vmf" (on the unit sphere) or "categorical" (one-hot, Gumbel's noise).
    prior : str, default="normal"
        "normal" (for "vmf" and "categorical" uniform), "mixture" (learned Gaussians), "vampprior" (the
        encoder at learned rows), "flow" (autoregressive maps), or "posthoc_gmm" (a Gaussian mixture
        fitted to the codes after learning).
    beta : float or str, default=1.0
        Weight of the divergence, or "linear:20": it rises from 0 to 1 over 20 epochs.
    n_samples : int, default=1
        Codes drawn per row in a training step.
    likelihood_scale : float, "learned" or "per_dim", default="learned"
        Standard deviation around the decoder's mean, in units of the scaled columns.
    prior_scale : float, default=1.0
        σ of the prior N(0, σ²I).
    posterior_scale : float, default=1.0
        s of ``posterior="fixed"``.
    n_prior_components : int, default=10
        Components of the priors "mixture", "vampprior" and "posthoc_gmm".
    free_bits : float, default=0.0
        Nats of every unit that cost nothing.
    objective : "elbo" or "iwae", default="elbo"
        The importance-weighted bound of ``n_samples`` codes is tighter; its gradient is the doubly
        reparametrised one.
    grad : "pathwise", "score" or "stl", default="pathwise"
        See ``groundstate.learn.NegativeELBO``.
    n_importance : int, default=500
        Draws per row of ``score_samples``.
    network : None, "mnist-listing", pair of modules or callable, default=None
        Own (encoder, decoder), or a function ``(inputs, numbers, codes, outputs)`` that makes them.
        "mnist-listing" is 784-512-256-(2, 2) and 2-256-512-784 with Bernoulli pixels.
    scale : "auto", "standard", "minmax", "unit" or None, default="auto"
        "auto" standardises, but leaves rows of bits as they are and takes those of
        "discretized_logistic" to [-1, 1].

    Attributes
    ----------
    active_units_ : (n_components,) array of bool
        Units whose mean varies over the rows, Var(μ) > 0.01; without any, learning has collapsed.
    energy_ : DeepLatentEnergy
    rule_ : NegativeELBO, with the encoder

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import VAE
    >>> t = np.random.default_rng(0).uniform(0, 2 * np.pi, 200)
    >>> X = np.column_stack([np.cos(t), np.sin(t)])
    >>> model = VAE(hidden_layer_sizes=(32,), max_iter=60, random_state=0).fit(X)
    >>> model.sample(3, random_state=0).shape, model.transform(X).shape, model.log_prob_kind_
    ((3, 2), (200, 2), 'estimate')
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = CONSTRAINTS
    traits = Traits(
        program=None,
        steps="max_iter",
        space={
            "learning_rate_init": settings.Real(1e-4, 1e-2, log=True),
            "n_components": settings.Whole(2, 32, log=True),
        },
    )
    category_code: ClassVar[str] = "levels"
    energy_: DeepLatentEnergy
    _seen: tuple[Tensor, Tensor | None, Tensor | None]
    active_units_: Any
    _local = _mean_draws = False

    def __init__(
        self,
        n_components: int = 2,
        likelihood: Any = "gaussian",
        posterior: str = "diag",
        prior: str = "normal",
        beta: float | str = 1.0,
        n_samples: int = 1,
        *,
        likelihood_scale: Any = "learned",
        prior_scale: float = 1.0,
        posterior_scale: float = 1.0,
        n_prior_components: int = 10,
        free_bits: float = 0.0,
        objective: str = "elbo",
        grad: str = "pathwise",
        n_importance: int = 500,
        network: Any = None,
        hidden_layer_sizes: Any = (128, 64),
        activation: str = "relu",
        solver: Any = "adam",
        learning_rate_init: float = 1e-3,
        batch_size: int | str = "auto",
        max_iter: int = 200,
        alpha: float = 0.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: float = math.inf,
        tol: float = 1e-4,
        warm_start: bool = False,
        scale: str | None = "auto",
        dequantize: bool = False,
        ema_decay: float | None = None,
        verbose: int = 0,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    # --- learning ------------------------------------------------------------------------

    @property
    def log_prob_kind(self) -> str:
        return "exact" if self.posterior == "categorical" else "estimate"

    @property
    def _likelihood_name(self) -> str:
        if self.network == "mnist-listing":
            return "bernoulli"
        return self.likelihood if isinstance(self.likelihood, str) else str(self.likelihood.name)

    @property
    def _scaling(self) -> str | None:
        as_they_are = {"bernoulli": None, "categorical": None, "discretized_logistic": "minmax"}
        auto = as_they_are.get(self._likelihood_name, "standard")
        return auto if self.scale == "auto" else self.scale

    def _energy_of(self, x: Tensor, y: Tensor | None, key: Key) -> DeepLatentEnergy:  # type: ignore[override]
        if self.network == "mnist-listing" and x.shape[1] != 784:
            raise ValueError(
                f"network='mnist-listing' reads rows of 784 pixels, got {x.shape[1]} columns; use "
                f"hidden_layer_sizes={LISTING} for other rows"
            )
        kind = self._likelihood_name if isinstance(self.likelihood, str) else self.likelihood
        head = make_likelihood(kind, x.shape[1], self.levels_, self.likelihood_scale)
        head.check(x)
        condition = 0 if y is None else y.shape[1]
        encoder, decoder = self._networks(head, condition, key)
        rows = head.inputs(x)
        if y is not None:
            rows = torch.cat([rows, y.to(rows.dtype)], 1)
        prior = make_prior(self, encoder, rows, condition, key.fold("prior"))
        return DeepLatentEnergy(decoder, head, prior, condition)

    def _networks(self, head: Likelihood, condition: int, key: Key) -> tuple[nn.Module, nn.Module]:
        k, inputs = int(self.n_components), head.n_inputs + condition
        family = make_family(self, key.fold("family"))
        numbers = family.size(spaces.Real(k))
        return networks(self, inputs, numbers, k + condition, head.n_outputs, key)

    def _loss(self, energy: Energy) -> Rule:
        assert isinstance(energy, DeepLatentEnergy)
        key = init_key(self.random_state).fold("init")
        family = make_family(self, key.fold("family"))
        if self._local:
            return NLL(over="x", latent=PerInstance(cast(Any, family), n=self.n_samples))
        if self.prior == "vampprior":
            if self.posterior != "diag":
                raise ValueError(
                    f"prior='vampprior' is a mixture of the normals of posterior='diag', not "
                    f"{self.posterior!r}"
                )
            return self._bound_rule(None, family, energy)  # the prior owns the encoder
        encoder = self._networks(energy.likelihood, energy.condition, key)[0]
        return self._bound_rule(encoder, family, energy)

    def _bound_rule(
        self, encoder: nn.Module | None, family: CodeFamily, energy: DeepLatentEnergy
    ) -> NegativeELBO:
        return NegativeELBO(encoder, family, **self._rule_settings)

    @property
    def _rule_settings(self) -> dict[str, Any]:
        beta, warm_up = schedule(self.beta)
        return {
            "n": self.n_samples, "beta": beta, "warm_up": warm_up, "free_bits": self.free_bits,
            "objective": self.objective, "grad": self.grad,
        }  # fmt: skip

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        super()._fit(X, y, sample_weight)
        look_at_codes(self, *self.__dict__.pop("_seen"))
        return self

    def _run(self, plan: Plan, data: Any, weight: Any, callbacks: Any, checked: bool) -> History:
        self._seen = data["x"], data.get("y"), weight
        return super()._run(plan, data, weight, callbacks, checked)

    def fit_local(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn without an encoder: every row has its own :math:`(\\mu_i, \\log\\sigma_i^2)` in a table,
        lowered whenever the row is met. New rows are fitted when they are asked about."""
        if self.posterior not in ("fixed", "diag", "full") or self.prior == "vampprior":
            raise ValueError(
                "fit_local keeps normal posteriors, posterior='fixed', 'diag' or 'full', and has no "
                f"encoder for a vampprior; got posterior={self.posterior!r}, prior={self.prior!r}"
            )
        self._local = True
        try:
            return self.fit(X, y, sample_weight)
        finally:
            del self._local

    # --- the posterior -------------------------------------------------------------------

    @property
    def _rule(self) -> Any:
        return self.rule_.rule if isinstance(self.rule_, Dequantised) else self.rule_

    @property
    def _family(self) -> CodeFamily:
        rule = self._rule
        family: CodeFamily = rule.family if isinstance(rule, NegativeELBO) else rule.latent.family
        return family

    def _numbers(self, x: Tensor, y: Tensor | None) -> Tensor:
        """The numbers of q of coded rows, ``(B, P)``, by the encoder or, without one, row by row."""
        rule = self._rule
        if isinstance(rule, NegativeELBO):
            rule.eval()
            return rule.encode(self.energy_, x, y)
        return refined(self.energy_, self._family, x, y, None, rule.latent.steps).params

    def _encode(self, x: Tensor, y: Tensor | None) -> Tensor:
        return self._family.centre(self._family.parts(self._numbers(x, y)))

    def _decode(self, z: Tensor, y: Tensor | None) -> Tensor:
        return self.energy_.likelihood.mean(self.energy_.decode(z, y))

    def refine(self, X: Any, y: Any = None, n_steps: int = 10) -> Refinement:
        """Improve the encoder's answer row by row: ``n_steps`` steps up the bound in q's own numbers.

        Returns
        -------
        Refinement with ``mean`` and ``std`` ``(n_samples, n_components)``, and the bound ``elbo``
        after and ``start`` before, ``(n_samples,)``; no row is worse than before
        """
        if self.posterior not in ("fixed", "diag", "full"):
            raise ValueError(
                f"refine moves the mean and spread of normal posteriors, not posterior="
                f"{self.posterior!r}"
            )
        return refinement(self, X, y, n_steps)

    # --- density -------------------------------------------------------------------------

    def elbo(self, X: Any, y: Any = None, n_samples: int = MONITOR) -> Any:
        """The bound :math:`E_q[\\log p(x \\mid z)] - \\mathrm{KL}(q\\|p(z)) \\le \\log p(x)` of each
        row, ``(n_samples,)``, with the divergence in closed form where it is known."""
        return bounds(self, X, y, n_samples)

    def _log_by_y(self, x: Tensor, contexts: Tensor) -> Tensor:
        return bounds_by_y(self, x, contexts).detach()

    def _log_prob(self, x: Tensor, y: Tensor | None) -> Tensor:
        return (summed if self.posterior == "categorical" else estimated)(self, x, y)

    def importance(
        self, X: Any, y: Any = None, n_importance: int | None = None
    ) -> ImportanceReport:
        """Log likelihood of each row by importance sampling, with standard error, effective number of
        draws and tail index of the weights; of an unknown class those of the most probable one."""
        n = self.n_importance if n_importance is None else n_importance
        return reported(self, X, y, checked_count(n, "n_importance"))

    def score_samples(self, X: Any, y: Any = None, n_importance: int | None = None) -> Any:
        """Estimated log density of each row in nats, ``(n_samples,)``.

        By draws as in ``importance``, biased down a little; warns where it cannot be trusted (k > 0.7).
        """
        check_is_fitted(self, "energy_")
        if self.posterior == "categorical" or self.coding_.is_spread:
            return super().score_samples(X, y)
        report = self.importance(X, y, n_importance)
        report.warn()
        return report.log_prob

    # --- draws ---------------------------------------------------------------------------

    def sample(
        self,
        n_samples: int = 1,
        y: Any = None,
        *,
        T: float = 1.0,
        return_latent: bool = False,
        return_mean: bool = False,
        random_state: Any = None,
    ) -> Any:
        """Draw rows, ``(n_samples, *event_shape_)``: a code from the prior, decoded.

        Parameters
        ----------
        n_samples, y, T, return_latent, random_state : as for every generator; T widens the prior by √T
        return_mean : the mean of a row given its code instead of a draw around it
        """
        self._mean_draws = return_mean
        try:
            return super().sample(
                n_samples, y, T=T, return_latent=return_latent, random_state=random_state
            )
        finally:
            del self._mean_draws

    def _draw(
        self, n: int, y: Tensor | None, T: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        z = self.energy_.prior.draw(n, y, T=T, generator=generator)
        out, head = self.energy_.decode(z, y), self.energy_.likelihood
        return (head.mean(out) if self._mean_draws else head.sample(out, generator)), z

    def _fill(
        self, x: Tensor, unknown: Tensor, y: Tensor | None, how: str, generator: torch.Generator
    ) -> Tensor:
        fill = most_probable if how == "minimise" else gibbs
        return fill(self, x, unknown, y, generator)

    def plot_network(self, form: str = "reparametrised") -> Drawing:
        """The two networks with the code between them, as an SVG picture.

        ``form="plain"`` draws the code as a random node; ``"reparametrised"`` as a function of mean,
        spread and noise, through which gradients pass.
        """
        return drawing(self, form)
