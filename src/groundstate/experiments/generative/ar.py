r"""The chain rule: exact values, any order, one network for all factors."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.models.generative.autoencoders.vae import VAE
from groundstate.models.generative.autoregressive.autoregressive_density import (
    AutoregressiveDensity,
)
from groundstate.models.generative.autoregressive.pixel_cnn import PixelCNN
from groundstate.models.generative.energy.bernoulli_rbm import BernoulliRBM
from groundstate.models.generative.flows.normalizing_flow import NormalizingFlow
from groundstate.models.networks.mlp_classifier import MLPClassifier

F64 = NDArray[np.float64]
SIDE, D = 4, 16
NOISE = 0.05


def patterns(n: int, key: Key) -> F64:
    """Stripes of 4 x 4 bits, across or down, each bit wrong once in twenty."""
    rng = key.numpy()
    on = rng.random((n, SIDE, 1)) < 0.5
    across = np.broadcast_to(on, (n, SIDE, SIDE))
    turned = rng.random(n) < 0.5
    X = np.where(turned[:, None, None], across.transpose(0, 2, 1), across)
    return (X ^ (rng.random(X.shape) < NOISE)).reshape(n, D).astype(np.float64)


def every() -> F64:
    return ((np.arange(2**D)[:, None] >> np.arange(D)) & 1).astype(np.float64)


def truth(X: F64) -> F64:
    """Log-probabilities of the patterns themselves."""
    rows = ((np.arange(2**SIDE)[:, None] >> np.arange(SIDE)) & 1).astype(float)
    clean = np.concatenate([np.repeat(rows, SIDE, 1), np.tile(rows, (1, SIDE))])
    wrong = np.abs(X[:, None] - clean).sum(2)
    log_p = wrong * np.log(NOISE) + (D - wrong) * np.log(1 - NOISE)
    top = log_p.max(1, keepdims=True)
    found: F64 = top[:, 0] + np.log(np.exp(log_p - top).mean(1))
    return found


def alone(X: F64, new: F64, seed: int) -> float:
    """Mean log-probability under a network of its own for each bit."""
    total = np.zeros(len(new))
    for j in range(D):
        p = np.clip((X[:, j].sum() + 1) / (len(X) + 2), 1e-6, 1)
        chance = np.column_stack([np.full(len(new), 1 - p), np.full(len(new), p)])
        if j and 0 < X[:, j].mean() < 1:
            net = MLPClassifier((32,), max_iter=60, random_state=seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # as many epochs as these, for each bit
                net.fit(X[:, :j], X[:, j])
            chance = net.predict_proba(new[:, :j])
        total += np.log(np.clip(chance[np.arange(len(new)), new[:, j].astype(int)], 1e-6, 1))
    return float(total.mean())


def bits(values: F64) -> Any:
    """Bits as levels, which the model then gives probabilities."""
    import pandas as pd

    return pd.DataFrame(values.astype(int).astype(str), columns=[f"b{j:02d}" for j in range(D)])


@experiment("GENX-ar", theme="generative", title="Exact by the chain rule", slow=True)
def ar(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Every distribution is :math:`p(x) = \prod_ip(x_{\pi(i)} \mid x_{\pi(<i)})`, in any order π. Each factor
    is normalised, so that log-probabilities are exact: over all :math:`2^{16}` patterns they sum to one. All
    orders can say the same, but learn it differently well; one network for all factors needs fewer rows than
    one for each. Others pay for a value: of a machine with hidden bits all patterns are summed, of a
    variational autoencoder :math:`\log p` is estimated by importance sampling, of a flow bounded over the
    cells of the bits.

    Stripes of 4 × 4 bits with noise, 200 rows to learn from, 2,000 to judge.
    """
    key = Key.of(seed)
    X, new = patterns(200, key.fold("train")), patterns(2000, key.fold("test"))
    whole = every()
    best = float(truth(new).mean())
    share = (X.sum(0) + 1) / (len(X) + 2)
    independent = float((new * np.log(share) + (1 - new) * np.log(1 - share)).sum(1).mean())
    scores: dict[str, float] = {"truth": best, "independent bits": independent}
    seconds: dict[str, float] = {}
    made: dict[str, Any] = {}
    for name, net in (("masked", "made"), ("linear", "linear"), ("GRU", "gru")):
        hidden = (32,) if net == "gru" else (128,)
        model = AutoregressiveDensity(
            net, hidden_layer_sizes=hidden, alpha=1e-3, max_iter=100, random_state=seed
        ).fit(bits(X))
        made[name] = model
        scores[name] = model.score(bits(new))
    pixels = PixelCNN(
        2, features=16, n_layers=2, max_iter=25, early_stopping=True, random_state=seed
    )
    made["pixels"] = pixels.fit(X.reshape(-1, SIDE, SIDE))
    scores["pixels"] = pixels.score(new.reshape(-1, SIDE, SIDE))
    how = dict.fromkeys(made, "exact, one pass")
    made["machine"] = machine = BernoulliRBM(
        12, learning_rate=0.05, n_iter=60, batch_size=20, random_state=seed
    ).fit(X)
    free = np.asarray(-machine.energy(whole))
    log_z = float(free.max() + np.log(np.exp(free - free.max()).sum()))
    scores["machine"] = float(np.mean(-np.asarray(machine.energy(new)))) - log_z
    made["autoencoder"] = coder = VAE(
        6, likelihood="bernoulli", hidden_layer_sizes=(64,), max_iter=100, batch_size=20,
        random_state=seed,
    ).fit(X)  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of heavy tails: an estimate is what it is
        scores["autoencoder"] = float(np.mean(coder.score_samples(new)))
    made["flow"] = flow = NormalizingFlow(
        "realnvp", n_transforms=4, dequantize=True, max_iter=20, random_state=seed
    ).fit(X)
    scores["flow"] = float(np.mean(flow.score_samples(new)))
    how |= {"machine": "all 2¹⁶ summed", "autoencoder": "importance sampling", "flow": "bound"}
    for name, model in made.items():
        start = time.perf_counter()
        model.sample(1000, random_state=0)
        seconds[name] = time.perf_counter() - start
    total = float(np.exp(made["masked"].score_samples(bits(whole))).sum())
    picture = float(np.exp(pixels.score_samples(whole.reshape(-1, SIDE, SIDE))).sum())
    orders = []
    for k in range(2 if quick else 4):
        model = AutoregressiveDensity(
            hidden_layer_sizes=(128,),
            order="random",
            alpha=1e-3,
            max_iter=100,
            random_state=seed + k,
        ).fit(bits(X))
        orders.append(model.score(bits(new)))
    scores["a network for each bit"] = separate = alone(X, new, seed)
    spread = max(orders) - min(orders)
    claims = [
        Claim.close("masked network: sum over all 2¹⁶ patterns", total, 1.0, tol=1e-3),
        Claim.close("pixels: sum over all 2¹⁶ patterns", picture, 1.0, tol=1e-3),
        Claim.at_least("masked network over independent bits, nats", scores["masked"] - independent, 1.0),
        Claim.at_most("masked network against the truth, nats", scores["masked"] - best, 0.0),
        Claim.at_most("best of machine, autoencoder and flow against the truth, nats",
                      max(scores[n] for n in ("machine", "autoencoder", "flow")) - best, 0.0),
        Claim.at_least("spread of log-likelihoods over orders", spread, 1e-3),
        Claim.at_least("one network against sixteen, 200 rows, nats", scores["masked"] - separate, 0.05),
    ]  # fmt: skip
    numbers = {
        "log-likelihood": scores, "by": how, "seconds for 1,000 draws": seconds, "orders": orders,
    }  # fmt: skip
    drawn = np.asarray(made["masked"].sample(8, random_state=seed), float)

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        names = sorted(scores, key=lambda n: scores[n])
        left.barh(names, [scores[n] for n in names], color=COLOURS[0])
        left.set(title="held-out log-likelihood, nats", xlim=(min(scores.values()) - 1, best + 1))
        rows = np.concatenate([X[:8], drawn]).reshape(4, 4, SIDE, SIDE)
        padded = np.pad(rows, ((0, 0), (0, 0), (0, 1), (0, 1)), constant_values=0.5)
        right.imshow(padded.transpose(0, 2, 1, 3).reshape(20, 20), cmap="gray_r")
        right.set(title="data (two rows), draws (two rows)", xticks=[], yticks=[])

    return Result(claims, numbers, draw)
