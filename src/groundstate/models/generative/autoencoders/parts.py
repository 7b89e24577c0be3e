"""What a variational autoencoder is made of, by name: likelihood, posterior, prior, networks."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.compute.weight_line.line import WeightLine
from groundstate.energy.latent.deep.priors import (
    ChoicePrior,
    ContextPrior,
    FlowPrior,
    MixturePrior,
    NormalPrior,
    Prior,
    SpherePrior,
    VampPrior,
)
from groundstate.infer.variational.codes import (
    Choices,
    CodeFamily,
    DiagonalNormal,
    Directions,
    FixedNormal,
    FlowedNormal,
    FullNormal,
)
from groundstate.learn.rules.bounds.negative_elbo import GRADS, OBJECTIVES
from groundstate.nn.blocks.initialise import linear
from groundstate.nn.blocks.mlp import MLP
from groundstate.nn.flows.autoregressive import Autoregressive
from groundstate.nn.flows.transform import Compose, Permutation
from groundstate.nn.heads.likelihoods import LIKELIHOODS, Likelihood, likelihood

POSTERIORS = ("fixed", "diag", "full", "iaf", "vmf", "categorical")
PRIORS = ("normal", "mixture", "vampprior", "flow", "posthoc_gmm")
LISTING = (512, 256)  # hidden layers of network="mnist-listing"
SCALED = ("gaussian", "student_t", "mixed", "discretized_logistic")
CONSTRAINTS: dict[str, Any] = {
    "n_components": [Interval(Integral, 1, None, closed="left")],
    "likelihood": [StrOptions(set(LIKELIHOODS)), Likelihood],
    "posterior": [StrOptions(set(POSTERIORS))],
    "prior": [StrOptions(set(PRIORS))],
    "beta": [Interval(Real, 0, None, closed="left"), str],
    "n_samples": [Interval(Integral, 1, None, closed="left")],
    "likelihood_scale": [
        Interval(Real, 0, None, closed="neither"), StrOptions({"learned", "per_dim"})
    ],
    "prior_scale": [Interval(Real, 0, None, closed="neither")],
    "posterior_scale": [Interval(Real, 0, None, closed="neither")],
    "n_prior_components": [Interval(Integral, 1, None, closed="left")],
    "free_bits": [Interval(Real, 0, None, closed="left")],
    "objective": [StrOptions(set(OBJECTIVES))],
    "grad": [StrOptions(set(GRADS))],
    "n_importance": [Interval(Integral, 1, None, closed="left")],
    "batch_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    "network": [StrOptions({"mnist-listing"}), "array-like", tuple, callable, None],
    "scale": [StrOptions({"auto", "standard", "minmax", "unit"}), None],
}  # fmt: skip
STEPS = 2  # autoregressive maps of posterior="iaf" and prior="flow"


def make_likelihood(kind: Any, d: int, levels: Sequence[int], scale: Any) -> Likelihood:
    """Of this name; tables with columns of categories take the one for mixed columns."""
    if isinstance(kind, Likelihood):
        return likelihood(kind, d)
    if any(levels):
        if kind not in ("gaussian", "mixed", "categorical"):
            raise ValueError(
                f"likelihood={kind!r} is for numbers, but X has columns of categories; use "
                "likelihood='gaussian', which gives categories a softmax over their levels"
            )
        kind = "categorical" if all(levels) else "mixed"
    elif kind in ("mixed", "categorical"):
        kind = "mixed"
    options = {"scale": scale} if kind in SCALED else {}
    return likelihood(kind, d, levels, **options)


def make_family(model: Any, key: Key) -> CodeFamily:
    """The posterior q of ``posterior=``."""
    k, kind = int(model.n_components), model.posterior
    if kind == "iaf":
        return FlowedNormal(autoregressive(k, model._hidden[-1:] or (32,), key, context=k))
    if kind == "fixed":
        return FixedNormal(scale=float(model.posterior_scale))
    return {"diag": DiagonalNormal, "full": FullNormal, "vmf": Directions, "categorical": Choices}[
        kind
    ]()


def autoregressive(k: int, hidden: Sequence[int], key: Key, context: int = 0) -> nn.Module:
    """Affine autoregressive maps with the order reversed between them; the identity at the start."""
    maps: list[Any] = []
    for i in range(STEPS):
        generator = key.fold("map", i).torch()
        maps.append(
            Autoregressive(
                k, context=context, hidden_layer_sizes=tuple(hidden), activation="tanh",
                generator=generator,
            )
        )  # fmt: skip
        if i < STEPS - 1 and k > 1:
            maps.append(Permutation(range(k - 1, -1, -1)))
    return Compose(maps)


def make_prior(
    model: Any, encoder: nn.Module | None, rows: Tensor, condition: int, key: Key
) -> Prior:
    """The prior of ``prior=``; ``rows`` are what the encoder reads, ``(n, inputs)``."""
    k, kind = int(model.n_components), model.prior
    posterior = model.posterior
    if posterior in ("vmf", "categorical") and kind != "normal":
        raise ValueError(
            f"prior={kind!r} is a distribution of real codes, but posterior={posterior!r} has codes on "
            f"{'a sphere' if posterior == 'vmf' else 'one-hot vectors'} with a uniform prior; leave "
            "prior='normal'"
        )
    if getattr(model, "conditional_prior", False):
        if kind != "normal":
            raise ValueError(f"conditional_prior=True is a normal p(z | y), not prior={kind!r}")
        if posterior in ("vmf", "categorical"):
            raise ValueError(
                f"conditional_prior=True needs real codes, not posterior={posterior!r}"
            )
        if not condition:
            raise ValueError("conditional_prior=True is a prior p(z | y) and needs y in fit")
        net = linear(condition, 2 * k)
        nn.init.zeros_(net.weight)  # starts at N(0, I)
        nn.init.zeros_(net.bias)
        return ContextPrior(net, k)
    if posterior == "vmf":
        return SpherePrior(k)
    if posterior == "categorical":
        return ChoicePrior(k)
    if kind == "mixture":
        return MixturePrior(k, int(model.n_prior_components), generator=key.torch())
    if kind == "vampprior":
        assert encoder is not None
        return VampPrior(encoder, _different_rows(model, rows, key).cpu(), k)
    if kind == "flow":
        return FlowPrior(autoregressive(k, model._hidden[-1:] or (32,), key), k)
    return NormalPrior(k, float(model.prior_scale))


def _different_rows(model: Any, rows: Tensor, key: Key) -> Tensor:
    """As many rows as the prior has components, each chosen by its weight and none twice."""
    weight = model._checked_weight(model._given_weight, rows)
    line = WeightLine.of(rows.double().cpu().numpy(), weights=weight)
    n = min(int(model.n_prior_components), int((line.contents[1] > 0).sum()))
    return rows[torch.as_tensor(line.draw(key, n, distinct=True), device=rows.device)]


def networks(
    model: Any, inputs: int, numbers: int, codes: int, outputs: int, key: Key
) -> tuple[nn.Module, nn.Module]:
    """Encoder from ``inputs`` to ``numbers`` and its mirror from ``codes`` to ``outputs``."""
    given = model.network
    if given == "mnist-listing":
        hidden: tuple[int, ...] = LISTING
        activation = "relu"
    elif given is None:
        hidden, activation = model._hidden, model.activation
    else:
        return _given(given, inputs, numbers, codes, outputs)
    encoder = MLP(inputs, hidden, numbers, activation, generator=key.fold("encoder").torch())
    decoder = MLP(codes, hidden[::-1], outputs, activation, generator=key.fold("decoder").torch())
    return encoder, decoder


def _given(
    given: Any, inputs: int, numbers: int, codes: int, outputs: int
) -> tuple[nn.Module, nn.Module]:
    from copy import deepcopy

    pair = given(inputs, numbers, codes, outputs) if callable(given) else given
    if not isinstance(pair, tuple | list | nn.ModuleList) or len(pair) != 2:
        raise ValueError(
            "network must be None, 'mnist-listing', a pair (encoder, decoder) of modules, or a function "
            f"(inputs, numbers, codes, outputs) that makes one, got {given!r:.80}"
        )
    encoder, decoder = deepcopy(pair[0]), deepcopy(pair[1])  # a parameter is not changed by a fit
    for name, net, into, out in (
        ("encoder", encoder, inputs, numbers),
        ("decoder", decoder, codes, outputs),
    ):
        with torch.no_grad():
            p = next(iter(net.parameters()), torch.zeros(()))
            net.eval()
            found = net(torch.zeros(2, into, dtype=p.dtype, device=p.device))
            net.train()
        if tuple(found.shape) != (2, out):
            raise ValueError(
                f"the {name} of network= must map (B, {into}) to (B, {out}), got "
                f"{tuple(found.shape)} for two rows"
            )
    return encoder, decoder


def schedule(beta: Any) -> tuple[float, int]:
    """Weight of the divergence and the epochs of its rise, of a number or "linear:epochs[:beta]"."""
    if not isinstance(beta, str):
        return float(beta), 0
    kind, *rest = beta.split(":")
    try:
        epochs, top = int(rest[0]), float(rest[1]) if len(rest) > 1 else 1.0
    except (ValueError, IndexError):
        epochs, top = 0, -1.0
    if kind != "linear" or len(rest) > 2 or epochs < 1 or not top >= 0:
        raise ValueError(
            f"beta is a number or 'linear:epochs', such as 'linear:20', or 'linear:epochs:beta' to rise "
            f"to another weight than 1, got {beta!r}"
        )
    return top, epochs
