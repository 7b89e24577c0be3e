r"""Learn to denoise: the loss of diffusion models."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.networks.denoiser import DenoiserEnergy
from groundstate.learn.base import Batch, Rule, Terms
from groundstate.learn.losses.diffusion import diffusion_rows, term_weights
from groundstate.math.diffusion import NoiseSchedule, Weighting, add_noise, convert, posterior
from groundstate.math.diffusion.bound import normal_log_prob
from groundstate.registry import rules


@rules.register(
    formula=r"L = w_t\,\|\epsilon - \epsilon_\theta(\sqrt{\bar\alpha_t}\,x + "
    r"\sqrt{1-\bar\alpha_t}\,\epsilon, t)\|^2",
    make=lambda energy: Diffusion(),
)
class Diffusion(Rule):
    r""":math:`L = w_t\|\epsilon - \epsilon_\theta(\sqrt{\bar\alpha_t}\,x + \sqrt{1-\bar\alpha_t}\,\epsilon,
    t)\|^2`. Lowers the energy of noisy rows towards the data they came from and raises it away from
    there: what is learned is its slope, the score at every noise level.

    t is uniform on 1..T and stratified over the batch (one uniform number, then even spaces).

    Parameters
    ----------
    weighting : "simple", "vlb", "min_snr", "snr", or a function of t and the schedule
        See ``groundstate.diffusion.loss_weights``.
    gamma : of "min_snr"
    label_dropout : share of the rows whose y is made unknown (zeros), so that one network learns with and
        without y, as guidance needs
    bound_share : share of the bound's term beside the squared error where the energy learns its
        variances (their mean held fixed)

    Examples
    --------
    >>> from groundstate.math.diffusion import NoiseSchedule
    >>> zero = DenoiserEnergy(lambda x, t: 0 * x, 2, NoiseSchedule())
    >>> noise = torch.Generator().manual_seed(0)
    >>> loss = Diffusion()(zero, {"x": torch.zeros(5000, 2)}, generator=noise).loss
    >>> round(loss.mean().item(), 1)  # the noise has variance 1 in both coordinates
    2.0
    """

    over = "x"
    recordable = True

    def __init__(
        self,
        weighting: Weighting = "simple",
        *,
        gamma: float = 5.0,
        label_dropout: float = 0.1,
        bound_share: float = 1e-3,
    ) -> None:
        super().__init__()
        if not 0 <= label_dropout < 1:
            raise ValueError(f"label_dropout must be in [0, 1), got {label_dropout}")
        self.weighting: Weighting = weighting
        self.gamma, self.label_dropout, self.bound_share = gamma, label_dropout, bound_share
        self._tables: dict[object, Tensor] = {}

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_tables": {}}

    def is_exact(self, energy: Energy, batch: Batch) -> bool:
        return False

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        if not isinstance(energy, DenoiserEnergy):
            return "it has no denoiser; use a DenoiserEnergy, or DenoisingScoreMatching"
        absent = [name for name in energy.spaces if name not in batch]
        return f"the batch holds no {absent[0]!r}" if absent else None

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        self.require(energy, batch)
        assert isinstance(energy, DenoiserEnergy)
        x, y, schedule = batch["x"], batch.get("y"), energy.noise_schedule
        t = levels(len(x), schedule.n_steps, x, generator)
        noise = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
        if y is not None and self.label_dropout and self.training:
            kept = torch.rand(len(x), 1, generator=generator, device=x.device) >= self.label_dropout
            y = y * kept.to(y.dtype)
        xt = add_noise(x, noise, t, schedule)
        out = energy.predict(xt, t, y)
        raw = None
        if energy.variance == "learned":
            out, raw = out.chunk(2, 1)
        target = noise
        if energy.prediction_type != "epsilon":
            target = convert(noise, xt, t, schedule, "epsilon", energy.prediction_type)
        plain = diffusion_rows(out, target)
        w = None if self.weighting == "simple" else self._weights(energy, x)[t - 1]
        loss = plain if w is None else w * plain
        if raw is not None:
            loss = loss + self.bound_share * schedule.n_steps * _bound_term(
                energy, x, xt, t, out.detach(), raw
            )

        def parts() -> tuple[Tensor, Tensor]:
            contrast = 2 * (out * target).flatten(1).sum(1)
            contrast = contrast if w is None else w * contrast
            return loss + contrast, contrast

        return Terms(loss, parts, exact=False)

    def _weights(self, energy: DenoiserEnergy, like: Tensor) -> Tensor:
        schedule, kind = energy.noise_schedule, energy.prediction_type
        key = (schedule, kind, like.device, like.dtype)
        if key not in self._tables:
            made = term_weights(schedule, self.weighting, kind, self.gamma)
            self._tables[key] = made.to(like)
        return self._tables[key]


def levels(n: int, T: int, like: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Levels ``(n,)``, each uniform on 1..T, together spread evenly over it."""
    first = torch.rand(1, generator=generator, device=like.device, dtype=torch.float32)
    at = (first + torch.arange(n, device=like.device) / n) % 1.0
    return (at * T).long().clamp(max=T - 1) + 1


def _bound_term(
    energy: DenoiserEnergy, x0: Tensor, xt: Tensor, t: Tensor, out: Tensor, raw: Tensor
) -> Tensor:
    """KL of the step's posterior to a normal with the learned variance, at t = 1 minus log p(x₀ | x₁)."""
    schedule: NoiseSchedule = energy.noise_schedule
    high, low = (v.to(xt)[t - 1][:, None] for v in schedule.logs_variances)
    share = 0.5 * (raw + 1)
    log_v = share * high + (1 - share) * low
    clean = convert(out, xt, t, schedule, energy.prediction_type, "sample")
    mean = posterior(clean, xt, t, schedule).mean
    gap = (posterior(x0, xt, t, schedule).mean - mean).square()
    kl = 0.5 * (log_v - low + (low - log_v).exp() + gap * (-log_v).exp() - 1)
    first = -normal_log_prob(x0, mean, log_v.exp())
    return torch.where((t == 1)[:, None], first, kl).sum(1)
