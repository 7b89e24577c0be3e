"""Skip-gram word vectors against gensim, one thread each."""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

DIM, EPOCHS = 100, 5


def data(size: tuple[int, ...], seed: int) -> dict[str, Any]:
    from groundstate.data.builtin.texts import analogies, make_relations

    (tokens,) = size
    texts = make_relations(tokens // 8, random_state=seed)
    return {"texts": [text.split() for text in texts], "questions": analogies()}


def ours(data: dict[str, Any]) -> Any:
    from groundstate.models.text import WordVectors

    return WordVectors(dim=DIM, max_epochs=EPOCHS, random_state=0).fit(data["texts"])


def gensim(data: dict[str, Any]) -> Any:
    from gensim.models import Word2Vec

    return Word2Vec(data["texts"], vector_size=DIM, sg=1, negative=5, epochs=EPOCHS, seed=0,
                    workers=1).wv  # fmt: skip


def score(data: dict[str, Any], model: Any) -> float:
    right = [
        model.most_similar(positive=[b, c], negative=[a])[0][0] == d
        for a, b, c, d in data["questions"]
    ]
    return sum(right) / len(right)


WORD_VECTORS = Benchmark(
    name="word-vectors",
    title="WordVectors(dim=100).fit, skip-gram, 5 epochs",
    sizes={"10000": (10_000,), "100000": (100_000,), "1000000": (1_000_000,)},
    data=data,
    ours=ours,
    peers={"gensim": Peer(gensim, "gensim", "gensim")},
    score=score,
    score_name="analogies",
    target=1.0,
)
