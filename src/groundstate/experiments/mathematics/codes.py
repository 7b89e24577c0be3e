r"""Surprise is additive, and entropy is the length of a code."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.math import info

F64 = NDArray[np.float64]
LETTERS = "abcdefghijklmnopqrstuvwxyz "
WORDS = [
    "the", "of", "energy", "and", "low", "is", "a", "good", "model", "to", "in", "that", "state",
    "data", "field", "sample", "random", "heat", "cold", "system", "learn", "infer", "code",
    "length", "surprise", "entropy", "bit", "message", "signal", "noise", "prior", "weight",
]  # fmt: skip


def text(rng: np.random.Generator, n: int) -> list[int]:
    """Letters of words that are drawn by Zipf's law."""
    chance = 1 / np.arange(1, len(WORDS) + 1)
    drawn = rng.choice(len(WORDS), n // 2, p=chance / chance.sum())
    letters = " ".join(WORDS[i] for i in drawn)[:n]
    return [LETTERS.index(c) for c in letters]


def counts(x: list[int]) -> tuple[F64, F64]:
    """Smoothed frequencies of letters and of pairs of letters."""
    one, two = np.full(len(LETTERS), 0.5), np.full((len(LETTERS), len(LETTERS)), 0.05)
    np.add.at(one, x, 1)
    np.add.at(two, (x[:-1], x[1:]), 1)
    return one / one.sum(), two / two.sum(1, keepdims=True)


@experiment("MAT-x-codes", theme="mathematics", title="Entropy is code length")
def codes(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Surprise :math:`s(p) = -\log p` is 0 for what is sure, falls with p, and adds for independent
    events, :math:`s(pq) = s(p) + s(q)`. Its mean is the least number of bits a symbol: a Huffman code
    has a mean length in [H, H + 1), an arithmetic code spends :math:`n\,H(p, q)` bits and no more on a
    text, whatever model q predicts the next letter. A model that looks at the letter before writes
    the same text in fewer bits.

    Models are counted on one text of 10,000 letters and code another one.
    """
    grid = np.linspace(0.01, 1, 100)
    s = info.surprise(grid)
    additive = float(np.abs(info.surprise(np.outer(grid, grid)) - s[:, None] - s).max())
    rng = Key.of(seed).fold("text").numpy()
    n = 10_000
    first, second = text(rng, n), text(rng, n)
    one, two = counts(first)
    shares = np.bincount(second, minlength=len(LETTERS)) / n
    H = float(info.entropy(one, base=2))
    code = info.huffman(one)
    prefix = len(code.encode(second)) / n
    coders = {
        "unigram": info.ArithmeticCoder(one),
        "bigram": info.ArithmeticCoder(lambda seen: two[seen[-1]] if seen else one),
    }
    ideal = {
        "unigram": n * float(info.cross_entropy(shares, one, base=2)),
        "bigram": float(info.code_length(one, second[0]))
        + float(info.surprise(two[second[:-1], second[1:]], base=2).sum()),
    }
    sent = {name: coder.encode(second) for name, coder in coders.items()}
    same = all(coder.decode(sent[name]) == second for name, coder in coders.items())
    waste = {name: sent[name].bits / ideal[name] - 1 for name in coders}
    bits = {"uniform": math.log2(27), "Huffman": prefix,
            **{name: sent[name].bits / n for name in coders}}  # fmt: skip
    mixes = [[8, 0, 0], [6, 2, 0], [4, 4, 0], [4, 2, 2], [3, 3, 2]]
    impurity = [float(info.entropy(mix, base=2)) for mix in mixes]
    claims = [
        Claim.at_most("surprise of a product less the sum of surprises", additive, 1e-12),
        Claim.below("largest step of surprise as p grows", float(np.diff(s).max()), 0.0),
        Claim.equal("surprise of what is sure", float(s[-1]), 0.0),
        Claim.between("mean length of the Huffman code less H", code.mean_length - H, 0.0, 1.0),
        Claim.equal("decoded texts are the texts", same, True),
        Claim.at_most("unigram coder: bits above n H(p, q), relative", waste["unigram"], 1e-3),
        Claim.at_most("bigram coder: bits above the model's, relative", waste["bigram"], 1e-3),
        Claim.below("bigram bits over unigram bits", bits["bigram"] / bits["unigram"], 0.8),
        Claim.close("cross-entropy of (0, 0, 1) in (.1, .2, .7), base 10",
                    info.cross_entropy([0, 0, 1], [0.1, 0.2, 0.7], base=10), 0.154902, tol=1e-6),
        Claim.equal("entropy grows with the mixture of classes", impurity, sorted(impurity)),
    ]  # fmt: skip
    numbers = {"bits": bits, "entropy": H, "Huffman": code.mean_length, "waste": waste,
               "boxes": impurity}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        left.plot(grid, s, color=COLOURS[0])
        left.set(title="surprise −log p", xlabel="p")
        for k, (mix, value) in enumerate(zip(mixes, impurity, strict=True)):
            classes = np.repeat(np.arange(3), mix)
            at = np.arange(8)
            middle.scatter(k + 0.3 * (at % 2) - 0.15, at // 2, s=60,
                           c=[COLOURS[c] for c in classes])  # fmt: skip
            middle.text(k, 4.0, f"{value:.2f}", ha="center")
        middle.set(
            title="boxes of classes by entropy in bits", ylim=(-0.7, 4.6), xticks=[], yticks=[]
        )
        right.bar(list(bits), list(bits.values()), color=COLOURS[: len(bits)])
        right.axhline(H, color="black", linewidth=0.7, linestyle=":", label="H of the letters")
        right.set(title="bits a letter")
        right.legend()

    return Result(claims, numbers, draw, size=(11.0, 3.3))
