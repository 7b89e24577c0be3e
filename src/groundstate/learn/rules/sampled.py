r"""A few negatives instead of all: other rows, weighted draws, or noise to be told apart."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from groundstate.energy.base import Energy
from groundstate.infer.base import Method
from groundstate.learn.base import Batch, Latent, Terms
from groundstate.learn.rules.common import ContrastRule, Plan, check_temperature
from groundstate.learn.rules.contrast import Contrast
from groundstate.learn.rules.inner import replace, suggested
from groundstate.learn.rules.negatives import sources
from groundstate.learn.rules.negatives.proposals import ProposalLike, Proposer
from groundstate.registry import rules


@rules.register(
    formula=r"L = e(x_i, y_i) + T\log\sum_j e^{-e(x_i, y_j)/T}",
    make=lambda energy: InBatch(approximate=suggested(energy)),
)
class InBatch(Contrast):
    r""":math:`L_i = e(x_i, y_i) + T\log\sum_j e^{-e(x_i, y_j)/T}`. Lowers e on pairs that belong
    together, raises e on pairs of x with the targets of other rows.

    InfoNCE, the contrast of representation learning: with :math:`e = -\mathrm{sim}(f(x), g(y))` it
    is cross-entropy on the similarity matrix. The sum runs over the distinct targets of the batch.

    Parameters
    ----------
    T : float in [0, inf], default=1.0
    over, latent, approximate
        See ``ContrastRule``.

    Examples
    --------
    >>> from groundstate.energy import Energy, Real
    >>> class Near(Energy):
    ...     def forward(self, x, y):
    ...         return (x - y).square().sum(-1)
    >>> same = torch.tensor([[0.0], [1.0]])
    >>> InBatch()(Near(x=Real(1), y=Real(1)), {"x": same, "y": same}).loss  # log(1 + exp(-1))
    tensor([0.3133, 0.3133])
    """

    def __init__(
        self,
        T: float = 1.0,
        *,
        over: str | tuple[str, ...] | None = None,
        latent: Latent = "marginalise",
        approximate: Method | Iterable[Method] = (),
    ) -> None:
        T = check_temperature(T)
        super().__init__(sources.InBatch(), T, over=over, latent=latent, approximate=approximate)
        self.T = T


@rules.register(
    formula=r"L = e_y + T\log\sum_j w_j e^{-e(v_j)/T},\ v_j \sim q",
    make=lambda energy: Sampled(n=16, approximate=suggested(energy)),
)
class Sampled(Contrast):
    r""":math:`L = e_y + T\log\sum_j w_j e^{-e(v_j)/T}`. Lowers e on the target, raises e on draws
    of a proposal q.

    Sampled softmax: the draws :math:`v_j \sim q` carry importance weights
    :math:`w_j = 1/(n\,q(v_j))`, so that the sum estimates the normaliser; see
    ``negatives.Proposal``. The draws are shared by the rows of a batch.

    Parameters
    ----------
    proposal : distribution, mapping of names to them, function of the known values, or None
        None is uniform where that exists (without replacement on finite spaces), else a normal with
        the mean and twice the variance of the batch.
    n : int, default=64
        Number of draws.
    T : float in [0, inf], default=1.0
    over, latent, approximate
        See ``ContrastRule``.

    Examples
    --------
    All values once is ``SoftMin``:

    >>> from groundstate.energy import Energy, Finite, Real
    >>> class Line(Energy):
    ...     def forward(self, x, y):
    ...         return x[:, 0] * y
    >>> energy = Line(x=Real(1), y=Finite(3))
    >>> Sampled(n=3)(energy, {"x": torch.ones(2, 1), "y": torch.tensor([0, 2])}).loss
    tensor([0.4076, 2.4076])
    """

    def __init__(
        self,
        proposal: ProposalLike | None = None,
        n: int = 64,
        T: float = 1.0,
        *,
        over: str | tuple[str, ...] | None = None,
        latent: Latent = "marginalise",
        approximate: Method | Iterable[Method] = (),
    ) -> None:
        T = check_temperature(T)
        super().__init__(
            sources.Proposal(proposal, n), T, over=over, latent=latent, approximate=approximate
        )
        self.T = T


@rules.register(
    formula=r"L = -\log\sigma(h(y)) - \sum_{j\le\nu}\log(1-\sigma(h(v_j))),"
    r"\ h = -e - c - \log(\nu q)",
    make=lambda energy: NCE(ratio=4, approximate=suggested(energy)),
)
class NCE(ContrastRule):
    r""":math:`L = \log(1+e^{-h(y)}) + \sum_{j=1}^{\nu}\log(1+e^{h(v_j)})`. Lowers e on the data,
    raises e on noise drawn from q.

    Noise contrastive estimation: a logistic regression tells data from ν draws of noise by the
    logit :math:`h = -e - c - \log(\nu q)`. The normaliser :math:`c = \log Z` is a learned parameter
    of the rule, and as ν grows the gradient becomes that of maximum likelihood.

    Parameters
    ----------
    noise : distribution, mapping of names to them, function of the known values, or None
        q; None as in ``Sampled``.
    ratio : int, default=8
        ν, draws of noise for every data row.
    log_z : float, default=0.0
        Start of c.
    learn_z : bool, default=True
        Learn c; where something is given and :math:`Z` depends on it, c = 0 makes the energy learn
        to normalise itself.
    over, latent, approximate
        See ``ContrastRule``.

    Attributes
    ----------
    c : Parameter, ``()``

    Examples
    --------
    >>> from groundstate.energy import Energy, Finite
    >>> class Fair(Energy):
    ...     def forward(self, x):
    ...         return torch.full(x.shape, 0.6931472)  # the model is the noise: h = -log(ratio)
    >>> NCE(ratio=1)(Fair(x=Finite(2)), {"x": torch.tensor([0, 1])}).loss.detach()
    tensor([1.3863, 1.3863])
    """

    def __init__(
        self,
        noise: ProposalLike | None = None,
        ratio: int = 8,
        *,
        log_z: float = 0.0,
        learn_z: bool = True,
        over: str | tuple[str, ...] | None = None,
        latent: Latent = "marginalise",
        approximate: Method | Iterable[Method] = (),
    ) -> None:
        super().__init__(over=over, latent=latent, approximate=approximate)
        if ratio < 1:
            raise ValueError(f"NCE needs at least one noise draw per row, got ratio={ratio}")
        self.noise: Any = noise
        self.ratio = ratio
        self.c = nn.Parameter(torch.tensor(float(log_z)), requires_grad=learn_z)

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        plan = self.plan(energy, batch)
        proposer = Proposer(energy, plan.over, batch, self.noise)
        drawn = proposer.draw(self.ratio, generator, shared=False)
        offset = self.c + math.log(self.ratio)
        e = plan.positive(batch, generator)
        h = -e - offset - proposer.log_prob(batch)  # (B,)
        e_noise = sources.evaluate(plan, batch, drawn.values, generator)  # (ratio, B)
        h_noise = -e_noise - offset - drawn.log_q
        loss = functional.softplus(-h) + functional.softplus(h_noise).sum(0)
        return Terms(loss, lambda: _nce_parts(e, loss), exact=False)

    def _route(self, plan: Plan, energy: Energy) -> Plan:
        return replace(plan, route="noise", exact=False)


def _nce_parts(e: Tensor, loss: Tensor) -> tuple[Tensor, Tensor]:
    return e, e - loss
