r"""The loss of variational autoencoders, with the encoder as the state of the rule.

.. math:: L = E_q[-\log p(x \mid z)] + \beta\,\mathrm{KL}(q(z \mid x)\,\|\,p(z)) \ge -\log p(x)
    \quad (\beta = 1)
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

from groundstate.compute.row_noise import row_noise
from groundstate.energy.base import Energy
from groundstate.energy.latent.deep.energy import DeepLatentEnergy
from groundstate.infer.variational.codes import CodeDraws, CodeFamily, DiagonalNormal
from groundstate.learn.base import Batch, Rule, Terms
from groundstate.learn.callbacks import Run
from groundstate.learn.rules.variational import with_score
from groundstate.nn.blocks.mlp import MLP
from groundstate.registry import rules

Grad = Literal["pathwise", "score", "stl"]
Objective = Literal["elbo", "iwae"]
GRADS, OBJECTIVES = ("pathwise", "score", "stl"), ("elbo", "iwae")


def _made(energy: Energy) -> NegativeELBO:
    if not isinstance(energy, DeepLatentEnergy):
        return NegativeELBO(None)
    inputs = energy.likelihood.n_inputs + energy.condition
    return NegativeELBO(MLP(inputs, (4,), 2 * energy.prior.k, "tanh"))


@rules.register(
    formula=r"L = E_q[-\log p(x \mid z)] + \beta\,\mathrm{KL}(q(z \mid x)\,\|\,p(z))", make=_made
)
class NegativeELBO(Rule):
    r""":math:`L = E_q[-\log p(x \mid z)] + \beta\,\mathrm{KL}(q(z \mid x)\,\|\,p(z))`. Lowers the
    energy of a row at the codes its encoder says, and raises the entropy of these codes.

    For a ``DeepLatentEnergy``. The encoder learns along with θ and is saved with the rule. With
    ``objective="iwae"`` the loss is :math:`-\log\tfrac1n\sum_i p(x, z_i)/q(z_i \mid x)`, a tighter
    bound, with the doubly reparametrised gradient (Tucker et al. 2019), whose signal does not fade
    with n.

    Parameters
    ----------
    encoder : network from ``likelihood.inputs(x)``, joined with y, to the numbers of q; None borrows
        the one that the energy's prior owns (``VampPrior``)
    family : what these numbers stand for, see ``groundstate.infer.variational.codes``
    n : int, default=1
        Codes drawn per row.
    beta : float, default=1.0
        Weight of the divergence.
    warm_up : int, default=0
        Epochs over which the weight rises linearly from 0 to ``beta``.
    free_bits : float, default=0.0
        Nats per coordinate of the code that cost nothing, so that it is not given up early.
    objective : "elbo" or "iwae"
    grad : "pathwise", "score" or "stl"
        Through the draws :math:`z = \mu + \sigma\varepsilon`; by :math:`\nabla\log q` with a baseline,
        for any family; or through the draws alone, without the score of q, whose variance vanishes
        as q reaches the posterior ("sticking the landing").

    Attributes
    ----------
    kl_weight : the present weight of the divergence
    epochs : finished epochs

    Examples
    --------
    >>> from groundstate.energy.latent.deep.priors import NormalPrior
    >>> from groundstate.nn.heads.likelihoods import GaussianLikelihood
    >>> energy = DeepLatentEnergy(MLP(2, (8,), 3), GaussianLikelihood(3), NormalPrior(2))
    >>> rule = NegativeELBO(MLP(3, (8,), 4))
    >>> rule(energy, {"x": torch.zeros(5, 3)}).loss.shape
    torch.Size([5])
    """

    kl_weight: Tensor
    epochs: Tensor

    def __init__(
        self,
        encoder: nn.Module | None,
        family: CodeFamily | None = None,
        *,
        n: int = 1,
        beta: float = 1.0,
        warm_up: int = 0,
        free_bits: float = 0.0,
        objective: Objective = "elbo",
        grad: Grad = "pathwise",
    ) -> None:
        super().__init__()
        if n < 1:
            raise ValueError(f"at least one draw is needed, got n={n}")
        if grad not in GRADS or objective not in OBJECTIVES:
            raise ValueError(
                f"grad must be one of {', '.join(GRADS)} and objective one of "
                f"{', '.join(OBJECTIVES)}, got {grad!r} and {objective!r}"
            )
        if not beta >= 0 or not free_bits >= 0 or warm_up < 0:
            raise ValueError(
                f"beta, free_bits and warm_up cannot be negative, got {beta}, {free_bits}, {warm_up}"
            )
        if objective == "iwae" and (beta != 1 or warm_up or free_bits or grad == "score"):
            raise ValueError(
                "objective='iwae' is a bound on log p with one weight for everything: use beta=1 "
                "without schedule or free_bits, and grad='pathwise' or 'stl'"
            )
        self.encoder = encoder
        self.family: Any = DiagonalNormal() if family is None else family
        if grad == "stl" and not self.family.has_density:
            raise ValueError(
                f"grad='stl' needs log q of any code, which {type(self.family).__name__} has only for "
                "its own draws; use grad='pathwise'"
            )
        self.n, self.beta, self.warm_up, self.free_bits = n, float(beta), warm_up, float(free_bits)
        self.objective, self.grad = objective, grad
        self.register_buffer("kl_weight", torch.tensor(0.0 if warm_up else float(beta)))
        self.register_buffer("epochs", torch.tensor(0))
        self._plain = beta == 1 and not warm_up

    stateful = True

    @property
    def recordable(self) -> bool:
        """Whether its draws are noise of a fixed shape, so that a step is the same kernels each time."""
        return bool(self.family.takes_noise) and self.objective == "elbo" and self.grad != "score"

    def config(self) -> dict[str, Any]:
        return {
            "encoder": self.encoder, "family": self.family, "n": self.n, "beta": self.beta,
            "warm_up": self.warm_up, "free_bits": self.free_bits, "objective": self.objective,
            "grad": self.grad,
        }  # fmt: skip

    # --- what solvers ask ----------------------------------------------------------------

    def is_exact(self, energy: Energy, batch: Batch) -> bool:
        return False

    def contrasted(self, energy: Energy) -> tuple[str, ...]:
        return ("x",)

    def contrast_is_constant(self, energy: Energy) -> bool:
        return True

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        if not isinstance(energy, DeepLatentEnergy):
            return (
                "it has no likelihood of a decoded code and no prior to be told apart; use NLL with "
                "latent=Variational() for any other energy"
            )
        if self.encoder is None and self._borrowed(energy) is None:
            return "there is no encoder, neither in the rule nor in the prior of the energy"
        missing = [name for name in ("x", "y") if name in energy.spaces and name not in batch]
        if missing:
            return f"the batch holds no {missing[0]!r}, which the encoder reads"
        reason: str | None = self.family.reason_against(energy.spaces["z"])
        return reason

    def end_epoch(self, run: Run) -> None:
        """Count the epoch and move the weight of the divergence along its schedule."""
        self.epochs += 1
        if self.warm_up:
            self.kl_weight.fill_(self.beta * min(1.0, float(self.epochs) / self.warm_up))
            run.history.extra.setdefault("kl_weight", []).append(float(self.kl_weight))

    # --- the loss ------------------------------------------------------------------------

    @staticmethod
    def _borrowed(energy: DeepLatentEnergy) -> nn.Module | None:
        found: nn.Module | None = getattr(energy.prior, "encoder", None)
        return found

    def encode(self, energy: DeepLatentEnergy, x: Tensor, y: Tensor | None = None) -> Tensor:
        """The encoder's numbers ``(B, P)``."""
        rows = energy.likelihood.inputs(x)
        if y is not None and energy.condition:
            rows = torch.cat([rows, y], 1)
        net = self._borrowed(energy) if self.encoder is None else self.encoder
        assert net is not None
        params: Tensor = net(rows)
        return params

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        if not isinstance(energy, DeepLatentEnergy):
            self.require(energy, batch)
        assert isinstance(energy, DeepLatentEnergy)
        loss = self.loss(energy, batch["x"], batch.get("y"), generator)
        return Terms(loss, lambda: (loss, torch.zeros_like(loss)), exact=False)

    def loss(
        self,
        energy: DeepLatentEnergy,
        x: Tensor,
        y: Tensor | None,
        generator: torch.Generator | None,
    ) -> Tensor:
        """The loss of every row ``(B,)``."""
        params = self.encode(energy, x, y)
        if self.objective == "iwae":
            return self._importance_weighted(energy, x, y, params, generator)
        q = self.family.parts(params)
        z, log_q = self.draws(q, x, energy.prior.k, generator)  # (n, B, k)
        if self.grad == "score":
            z = z.detach()
        reconstruction = self.reconstruction(energy, x, y, z)  # (n, B)
        terms = None if self.grad == "stl" else self.family.kl(q, energy.prior, y)  # (B, k)
        if terms is not None:
            if self.grad == "score":
                reconstruction = with_score(reconstruction, self.family.log_prob(q, z))
            kl = terms.clamp_min(self.free_bits).sum(1) if self.free_bits else terms.sum(1)
            mean = reconstruction[0] if self.n == 1 else reconstruction.mean(0)
            return mean + kl if self._plain else torch.addcmul(mean, kl, self.kl_weight)
        if self.grad == "stl":
            log_q_z = self.family.log_prob(self.family.parts(params.detach()), z)
        else:
            log_q_z = self.family.log_prob(q, z) if self.grad == "score" else log_q()
        sampled = log_q_z - energy.prior.log_prob(z, y)  # (n, B)
        if self.free_bits:
            sampled = sampled.clamp_min(self.free_bits * z.shape[-1])
        if self.grad == "score":
            sampled = sampled - log_q_z + log_q_z.detach()  # E_q of the score is zero
            return with_score(reconstruction + self.kl_weight * sampled, log_q_z).mean(0)
        return (reconstruction + self.kl_weight * sampled).mean(0)

    def draws(self, q: Any, x: Tensor, k: int, generator: torch.Generator | None) -> CodeDraws:
        """Codes ``(n, B, k)``; equal rows have equal noise, so that a weight of 2 is the row twice."""
        if self.family.takes_noise:
            placed: CodeDraws = self.family.place_noise(q, row_noise(x, self.n, k, generator))
            return placed
        drawn: CodeDraws = self.family.draws(q, self.n, generator)
        return drawn

    def reconstruction(
        self, energy: DeepLatentEnergy, x: Tensor, y: Tensor | None, z: Tensor
    ) -> Tensor:
        r""":math:`-\log p(x \mid z)` ``(n, B)`` of codes ``(n, B, k)``."""
        n, rows, k = z.shape
        if n == 1:
            return energy.reconstruction(x, z[0], y)[None]
        many = x.repeat(n, 1)
        condition = None if y is None else y.repeat(n, 1)
        return energy.reconstruction(many, z.reshape(n * rows, k), condition).view(n, rows)

    def _importance_weighted(
        self,
        energy: DeepLatentEnergy,
        x: Tensor,
        y: Tensor | None,
        params: Tensor,
        generator: torch.Generator | None,
    ) -> Tensor:
        z, log_q = self.draws(self.family.parts(params), x, energy.prior.k, generator)
        if self.family.has_density:
            # Doubly reparametrised: q's own parameters get no gradient from log q, and what reaches
            # them through z is weighted twice.
            log_q_z = self.family.log_prob(self.family.parts(params.detach()), z)
        else:
            log_q_z = log_q()
        log_w = energy.prior.log_prob(z, y) - self.reconstruction(energy, x, y, z) - log_q_z
        if z.requires_grad and self.family.has_density:
            weight = log_w.detach().softmax(0).unsqueeze(-1)
            z.register_hook(lambda g: g * weight)
        return math.log(self.n) - log_w.logsumexp(0)
