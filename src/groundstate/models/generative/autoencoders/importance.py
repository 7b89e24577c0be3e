r"""Held-out log likelihood by importance sampling with the encoder as proposal,

.. math:: \log\hat p(x) = \log\tfrac1M\sum_i \frac{p(x, z_i)}{q(z_i \mid x)}, \qquad z_i \sim q(z \mid x).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.display import Displayed
from groundstate.compute.random import Key
from groundstate.compute.thread_policy import answering
from groundstate.energy.latent.deep.energy import DeepLatentEnergy
from groundstate.errors import Unreliable
from groundstate.infer.variational.codes import CodeDraws, CodeFamily
from groundstate.math.stats.psis import pareto_k, weight_ess

CELLS = 2**22  # numbers of one layer that are held at once
FEW = 16  # draws that tell which y a row is of
TRUSTED = 0.7  # tail index up to which weights can be trusted


@dataclass(frozen=True)
class ImportanceReport(Displayed):
    """Log likelihoods by importance sampling and how far they can be trusted, ``(n_samples,)`` each.

    Attributes
    ----------
    log_prob : estimate of log p(x), biased down
    stderr : its standard error
    ess : effective number of draws
    pareto_k : tail index of the weights; above ½ their variance is infinite, above 0.7 the estimate
        cannot be trusted
    n : draws per row
    """

    log_prob: Any
    stderr: Any
    ess: Any
    pareto_k: Any
    n: int

    def warn(self) -> None:
        """Say how many rows have weights that cannot be trusted."""
        bad = self.pareto_k > TRUSTED
        if int(bad.sum()):
            warnings.warn(
                f"the importance weights of {int(bad.sum())} of {len(bad)} rows have a heavy tail (Pareto "
                f"k up to {float(self.pareto_k[bad].max()):.2f} > {TRUSTED}), so log p of these rows "
                "cannot be trusted; train longer, use posterior='full' or 'iaf', or more n_importance",
                Unreliable,
                stacklevel=3,
            )

    def _facts(self) -> dict[str, object]:
        return {
            "mean log p": float(self.log_prob.mean()),
            "worst k": float(self.pareto_k.max()),
            "least ess": float(self.ess.min()),
            "draws": self.n,
        }


def codes_of(family: CodeFamily, params: Tensor, n: int, k: int) -> CodeDraws:
    """``n`` codes of every row by noise that all rows share, so that an answer is the row's own."""
    q = family.parts(params)
    key = Key.of(0).fold("importance")
    if family.takes_noise:
        noise = torch.randn(n, 1, k, generator=key.torch(), dtype=torch.float64)
        return family.place_noise(q, noise.to(params))
    own = [family.draws(family.parts(p[None]), n, key.torch(params.device)).z for p in params]
    z = torch.cat(own, 1)
    return CodeDraws(z, lambda: family.log_prob(q, z))


def log_weights(
    energy: DeepLatentEnergy,
    family: CodeFamily,
    params: Tensor,
    x: Tensor,
    y: Tensor | None,
    n: int,
) -> Tensor:
    r""":math:`\log p(x, z_i) - \log q(z_i \mid x)`, ``(n, B)``."""
    z, log_q = codes_of(family, params, n, energy.prior.k)
    rows = len(x)
    many = x.repeat(n, 1)
    context = None if y is None else y.repeat(n, 1)
    e = energy.reconstruction(many, z.reshape(n * rows, -1), context).view(n, rows)
    prior = energy.prior.log_prob(z, None if y is None else y.expand(n, *y.shape))
    return prior - e - log_q()


def width(energy: DeepLatentEnergy) -> int:
    """Numbers of the widest layer of a row."""
    wide = [p.shape[0] for p in energy.parameters() if p.ndim > 1]
    return max([energy.likelihood.n_outputs, energy.likelihood.d, *wide])


def chunk(energy: DeepLatentEnergy, n: int) -> int:
    """Rows whose draws are held at once."""
    return max(1, CELLS // (n * width(energy)))


def summary(log_w: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Log mean, standard error, effective number and tail index of weights ``(n, B)``."""
    n = len(log_w)
    log_p = log_w.logsumexp(0) - math.log(n)
    w = (log_w - log_p).exp()
    stderr = w.std(0) / math.sqrt(n) if n > 1 else torch.full_like(log_p, math.inf)
    equal = log_w.amax(0) - log_w.amin(0) < 1e-6  # rounding has no tail
    k = (
        torch.where(equal, -math.inf, pareto_k(log_w))
        if n > 25
        else torch.full_like(log_p, math.nan)
    )
    return log_p, stderr, weight_ess(log_w), k


# --- answers of a fitted model -----------------------------------------------------------


def pieces(step: int, x: Tensor, y: Tensor | None) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Consecutive rows with their contexts, so many at once."""
    for at in range(0, len(x), step):
        yield x[at : at + step], None if y is None else y[at : at + step]


def estimated(model: Any, x: Tensor, y: Tensor | None) -> Tensor:
    """log p of coded rows ``(B,)`` by importance sampling, differentiable in x."""
    energy, n = model.energy_, int(model.n_importance)
    parts = [
        log_weights(energy, model._family, model._numbers(rows, own), rows, own, n).logsumexp(0)
        for rows, own in pieces(chunk(energy, n), x, y)
    ]
    return torch.cat(parts) - math.log(n)


def summed(model: Any, x: Tensor, y: Tensor | None) -> Tensor:
    """log p of coded rows ``(B,)`` for a code with few values: all of them."""
    given = {"x": x} if y is None else {"x": x, "y": y}
    codes = torch.eye(model.energy_.prior.k, dtype=x.dtype, device=x.device)
    each = [-model.energy_(z=z.expand(len(x), -1), **given) for z in codes]
    return torch.stack(each).logsumexp(0)


def reported(model: Any, X: Any, y: Any, n: int) -> ImportanceReport:
    """The estimates of rows of a table, and their diagnostics."""
    x, home = model._rows(X)
    given = model._contexts(y, len(x))
    step = chunk(model.energy_, n)
    with answering(model.energy_, x):
        found = [_weighed(model, rows, own, n) for rows, own in pieces(step, x, given)]
    log_p, stderr, ess, k = (torch.cat([f[i] for f in found]) for i in range(4))
    log_p = log_p - model.coding_.log_scale
    return ImportanceReport(home.give(log_p), home.give(stderr), home.give(ess), home.give(k), n)


def _weighed(model: Any, x: Tensor, y: Tensor | None, n: int) -> tuple[Tensor, ...]:
    if y is None and model.condition_ is not None:
        contexts, logs = model.condition_.all_contexts(x)
        each = [_weighed(model, x, c.expand(len(x), -1), n) for c in contexts]
        joint = torch.stack([e[0] for e in each]) + logs[:, None]
        best = joint.argmax(0)
        rest = [torch.stack([e[i] for e in each]).gather(0, best[None])[0] for i in (1, 2, 3)]
        return joint.logsumexp(0), *rest
    return summary(log_weights(model.energy_, model._family, model._numbers(x, y), x, y, n))


def bounds(model: Any, X: Any, y: Any, n: int) -> Any:
    r"""The ELBO of rows of a table by ``n`` draws each; of a y that is not given
    :math:`\log\sum_yp(y)e^{J(x, y)} \le \log p(x)`."""
    x, home = model._rows(X)
    with answering(model.energy_, x):
        given = None if y is None else model._contexts_of(y, x)
        if given is None and model.condition_ is not None:
            contexts, logs = model.condition_.all_contexts(x)
            found = (logs + bounds_by_y(model, x, contexts, n)).logsumexp(1)
        else:
            found = _bounded(model, x, given, n)
    return home.give(found - model.coding_.log_scale)


def bounds_by_y(model: Any, x: Tensor, contexts: Tensor, n: int = FEW) -> Tensor:
    """The ELBO of coded rows given each context, ``(B, m)``."""
    return torch.stack([_bounded(model, x, c.expand(len(x), -1), n) for c in contexts], 1)


def _bounded(model: Any, x: Tensor, y: Tensor | None, n: int) -> Tensor:
    step = chunk(model.energy_, n)
    return torch.cat([_bound(model, rows, own, n) for rows, own in pieces(step, x, y)])


def _bound(model: Any, x: Tensor, y: Tensor | None, n: int) -> Tensor:
    family, prior = model._family, model.energy_.prior
    params = model._numbers(x, y)
    z, log_q = codes_of(family, params, n, prior.k)
    many = None if y is None else y.repeat(n, 1)
    e = model.energy_.reconstruction(x.repeat(n, 1), z.reshape(n * len(x), -1), many).view(n, -1)
    kl = family.kl(family.parts(params), prior, y)
    if kl is not None:
        found: Tensor = -e.mean(0) - kl.sum(1)
        return found
    wide = None if y is None else y.expand(n, *y.shape)
    drawn: Tensor = (prior.log_prob(z, wide) - log_q() - e).mean(0)
    return drawn
