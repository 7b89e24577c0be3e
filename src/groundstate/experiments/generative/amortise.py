r"""An encoder replaces the table of posteriors, and a few steps of refinement close the gap."""

from __future__ import annotations

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.models.generative.autoencoders.vae import VAE

STEPS = (0, 1, 2, 5, 10, 50)


def arc(rng: np.random.Generator, n: int) -> np.ndarray:
    """A noisy three-quarter circle with a third column of its height squared."""
    t = rng.uniform(0, 1.5 * np.pi, n)
    rows = np.column_stack([np.cos(t), np.sin(t), np.sin(t) ** 2])
    return rows + 0.1 * rng.normal(size=(n, 3))


@experiment(
    "GENX-amortise",
    theme="generative",
    title="An encoder replaces a table of posteriors",
    slow=True,
)
def amortise(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The bound :math:`J(\mu, \sigma) = E_q[\log p(x, z)] + H(q)` at an encoder's answer, after some
    steps on each row from there, and at its own optimum: :math:`J_{local} \ge J_{refined} \ge
    J_{amortised}`, for training rows and for rows never seen.

    A VAE with a code of length 2 on a bent curve of three columns.
    """
    rng = Key.of(seed).fold("rows").numpy()
    X, new = arc(rng, 150), arc(rng, 150)
    model = VAE(
        2,
        hidden_layer_sizes=(32,),
        learning_rate_init=1e-2,
        batch_size=128,
        max_iter=60,
        random_state=seed,
    ).fit(X)
    curves = {
        name: [float(model.refine(rows, n_steps=s).elbo.mean()) for s in STEPS]
        for name, rows in (("training rows", X), ("new rows", new))
    }
    seen, fresh = curves["training rows"], curves["new rows"]
    each = model.refine(new, n_steps=10)
    refined = STEPS.index(10)
    claims = [
        Claim.at_least("J after 10 steps − J of the encoder, training", seen[refined] - seen[0], 0.0),
        Claim.at_least("J after 10 steps − J of the encoder, new rows", fresh[refined] - fresh[0], 0.0),
        Claim.at_least("J local − J refined, training", seen[-1] - seen[refined], -1e-6),
        Claim.at_least("J local − J refined, new rows", fresh[-1] - fresh[refined], -1e-6),
        Claim.at_least("least gain of a row by refinement", float((each.elbo - each.start).min()), -1e-6),
        Claim.at_most("share of the gap that 10 steps leave",
                      (fresh[-1] - fresh[refined]) / max(fresh[-1] - fresh[0], 1e-12), 0.2),
        Claim.at_most("gap of the encoder on new rows, nats", fresh[-1] - fresh[0], 1.0),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        for colour, (name, values) in zip(COLOURS, curves.items(), strict=False):
            ax.plot(range(len(STEPS)), values, "o-", color=colour, label=name)
        ax.set_xticks(range(len(STEPS)), [str(s) for s in STEPS])
        ax.set(xlabel="steps on each row, from the encoder's answer", ylabel="mean bound J")
        ax.legend()

    return Result(claims, {"steps": list(STEPS), **curves}, draw, size=(5.5, 3.4))
