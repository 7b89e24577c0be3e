r"""Merging frequent neighbours: a larger vocabulary makes texts shorter."""

from __future__ import annotations

import numpy as np

from groundstate.data.builtin.texts import make_relations, make_reviews
from groundstate.data.text.plain import PlainCoder
from groundstate.data.text.reference_bpe import merge, reference_bpe
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment


@experiment("ARC-x-bpe", theme="architectures", title="Vocabulary against length")
def bpe(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Byte-pair encoding begins with characters and merges the most frequent neighbours. Every merge
    adds one token, :math:`|V_{m+1}| = |V_m| + 1`, and shortens the text, the first ones most; nothing is
    lost on the way.

    Made-up reviews and sentences about countries, 0 to 2,000 merges or until no pair is frequent.
    """
    texts = [*make_reviews(400, random_state=seed)[0], *make_relations(400, random_state=seed)]
    coder = PlainCoder("word", (), ())
    words: dict[str, int] = {}
    for text in texts:
        for word in coder.cut(text):
            words[word] = words.get(word, 0) + 1
    signs = len(set("".join(words)))
    found = reference_bpe(words, signs + (300 if quick else 2000))
    sizes = [signs + i for i in range(len(found.lengths))]
    lengths = np.array(found.lengths)
    ids = {word: [found.tokens.index(s) for s in word] for word in words}
    for pair, new in found.merges.items():
        ids = {word: merge(tokens, pair, new) for word, tokens in ids.items()}
    back = all("".join(found.tokens[i] for i in tokens) == word for word, tokens in ids.items())
    used = {found.tokens[i] for tokens in ids.values() for i in tokens}
    whole = sum(word in used for word in words) / len(words)
    tenth = len(lengths) // 10
    share = float((lengths[0] - lengths[tenth]) / (lengths[0] - lengths[-1]))
    claims = [
        Claim.equal("tokens of the vocabulary grow by one a merge", int(np.diff(sizes).max()), 1),
        Claim.at_most("largest change of the length in a merge", int(np.diff(lengths).max()), -1),
        Claim.equal("all words come back", back, True),
        Claim.at_least("share of the shortening by the first tenth of the merges", share, 0.3),
        Claim.at_most("last over first length", float(lengths[-1] / lengths[0]), 0.5),
    ]
    numbers = {"vocabulary": sizes[::50], "length": lengths[::50].tolist(), "whole words": whole,
               "first merges": found.tokens[signs : signs + 10]}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.plot(sizes, color=COLOURS[0])
        left.set(title="tokens in the vocabulary", xlabel="merges")
        right.plot(lengths, color=COLOURS[1])
        right.set(title="tokens in the text", xlabel="merges", ylim=(0, None))

    return Result(claims, numbers, draw, size=(8.0, 3.2))
