r"""Greedy, beam and exhaustive search on a model that was learned."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch

from groundstate.compute.random import Key
from groundstate.energy import ChainRuleEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.infer import decode
from groundstate.learn import NLL, fit
from groundstate.learn.train.stochastic import Stochastic

K, T, WIDTHS = 6, 5, (1, 2, 4, 6)


@experiment(
    "ARC-x-decode", theme="architectures", title="Greedy, beam, exhaustive: what a search finds"
)
def search(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The best string of :math:`|V|^T` is found by listing them, or nearly so by keeping M beginnings
    at a cost of :math:`TM|V|`. A wider beam is better on average, not for every model; ranking all
    extensions of all beginnings beats continuing each on its own.

    Recurrent models of |V| = 6 symbols and T = 5 steps, each learned from 40 strings of a random
    Markov chain; mean log-probability of what each search finds, over prompts of one symbol.
    """
    key, models = Key.of(seed), 8 if quick else 16
    found: dict[str, list[float]] = {f"beam {m}": [] for m in WIDTHS}
    found |= {f"independent {m}": [] for m in WIDTHS} | {"greedy": [], "exhaustive": []}
    picture: Any = None
    for i in range(models):
        energy = _learned(key.fold("model", i))
        prompt = torch.arange(K)[:, None]  # (6, 1)
        for name, values in found.items():
            method, _, width = name.partition(" ")
            options: dict[str, Any] = {} if not width else {"beams": int(width)}
            if method == "independent":
                method, options = "beam", {**options, "independent": True}
            values += decode(energy, method, prompt=prompt, **options).log_prob[:, 0].tolist()  # type: ignore[arg-type]
        picture = picture or energy
    mean = {name: sum(v) / len(v) for name, v in found.items()}
    wide = [mean[f"beam {m}"] for m in WIDTHS]
    alone = [mean[f"independent {m}"] for m in WIDTHS]
    cost = {"exhaustive": K**T, **{f"beam {m}": K + (T - 1) * m * K for m in WIDTHS}}
    claims = [
        Claim.at_least(f"beam {b} against {a}: gain of mean log p", wide[j + 1] - wide[j], 0.0)
        for j, (a, b) in enumerate(pairwise(WIDTHS))
    ]
    claims += [
        Claim.above(f"beam {m}: re-ranked against independent", w - a, 0.0)
        for m, w, a in zip(WIDTHS, wide, alone)
        if m > 1  # a beam of one has nothing to rank
    ]
    claims += [
        Claim.close("a beam of 1 against greedy", wide[0], mean["greedy"], tol=1e-6),
        Claim.at_least("exhaustive against a beam of 6", mean["exhaustive"] - wide[-1], -1e-6),
        Claim.above("exhaustive against greedy", mean["exhaustive"] - mean["greedy"], 0.01),
        Claim.equal("strings that exhaustive search compares", cost["exhaustive"], 7776),
    ]

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.plot(WIDTHS, wide, "o-", color=COLOURS[0], label="re-ranked")
        left.plot(WIDTHS, alone, "s-", color=COLOURS[1], label="independent")
        left.axhline(mean["exhaustive"], color="#333", ls="--", label="exhaustive")
        left.set(title="mean log p of what is found", xlabel="beginnings kept, M")
        left.legend()
        _tree(right, picture)

    return Result(claims, {"mean": mean, "cost": cost}, draw, size=(9.0, 3.8))


def _learned(key: Key) -> ChainRuleEnergy:
    g = key.fold("data").torch()
    noise = torch.rand(K, K, generator=g, dtype=torch.float64)
    table = (-noise.log()) ** 2  # far from uniform
    table = table / table.sum(1, keepdim=True)
    rows = [torch.randint(K, (40,), generator=g)]
    for _ in range(T - 1):
        rows.append(torch.multinomial(table[rows[-1]], 1, generator=g)[:, 0])
    energy = ChainRuleEnergy(K, T, 12, generator=key.fold("init").torch())
    data = {"x": torch.stack(rows, 1)}
    solver = Stochastic(lr=3e-2, max_epochs=60)
    fit(energy, data, NLL(), solver, random_state=key.fold("order"))
    return energy


def _tree(ax: Any, energy: ChainRuleEnergy) -> None:
    """Two steps of all beginnings behind the first symbol, wide where probable; the best in blue."""
    best = decode(energy, "exhaustive", prompt=torch.tensor([[0]])).tokens[0, 0].tolist()
    first = _next(energy, [0])
    for i, p in enumerate(first):
        second = _next(energy, [0, i])
        own = best[1] == i
        ax.plot([0, 1], [2.5, i], color=COLOURS[0] if own else "#99a", lw=0.3 + 6 * p)
        for j, q in enumerate(second):
            hit = own and best[2] == j
            height = i + (j - 2.5) / 7
            ax.plot([1, 2], [i, height], color=COLOURS[0] if hit else "#99a", lw=0.3 + 6 * p * q)
        ax.text(0.96, i + 0.12, str(i), ha="right", fontsize=8)
    ax.set(title="search tree behind symbol 0", xticks=[0, 1, 2], yticks=[], xlabel="step")


def _next(energy: ChainRuleEnergy, prefix: list[int]) -> list[float]:
    """Probabilities of the symbol behind a beginning."""
    following = energy.conditional(torch.tensor([prefix]))
    return [float(following.log_prob(torch.tensor([i])).exp()) for i in range(K)]
