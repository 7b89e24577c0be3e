r"""Word vectors: what stands around a word says what it means, and differences are relations."""

from __future__ import annotations

import numpy as np

from groundstate.data.builtin.texts import COUNTRIES, PEOPLE, analogies, make_relations
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.models.text.word_vectors import WordVectors


@experiment("ARC-x-words", theme="architectures", title="Arithmetic of word vectors")
def words(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Skip-gram lowers :math:`-\log\sigma(u_w\cdot v_c)` of neighbours and raises it of drawn words.
    Words of a pair (country and capital, king and queen) share the words that only they stand with,
    words of a side share its verbs, so that :math:`u_b - u_a + u_c` is nearest to d in
    a : b = c : d. Without windows, vectors that never learned, nothing of this is there.

    4,000 made-up sentences, 30 numbers per word, 272 questions.
    """
    texts = make_relations(1500 if quick else 4000, random_state=seed)
    model = WordVectors(dim=30, max_epochs=20, random_state=seed).fit(texts)
    continuous = WordVectors("cbow", dim=30, max_epochs=20, random_state=seed).fit(texts)
    questions = analogies()
    right, also = model.analogies(questions), continuous.analogies(questions)
    blank = WordVectors(dim=30, max_epochs=1, lr=1e-9, random_state=seed).fit(texts)
    control = blank.analogies(questions)
    unit = model._unit()
    number = {word: i for i, word in enumerate(model.vocabulary_)}
    pairs = [(a, b) for a, (b, _) in COUNTRIES.items()]
    step = np.array([unit[number[b]] - unit[number[a]] for a, b in pairs])
    step /= np.linalg.norm(step, axis=1, keepdims=True)
    parallel = float((step @ step.T)[~np.eye(len(step), dtype=bool)].mean())
    queen = model.most_similar(["king", "woman"], ["man"], top=1)[0][0]
    claims = [
        Claim.at_least("answers to a : b = c : d, skip-gram", right, 0.8),
        Claim.at_least("answers, CBOW", also, 0.8),
        Claim.at_most("answers before learning", control, 0.1),
        Claim.equal("king − man + woman", queen, "queen"),
        Claim.at_least("mean cosine of country → capital", parallel, 0.3),
    ]
    numbers = {"skip-gram": right, "CBOW": also, "before": control, "parallel": parallel}

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 2)
        people = [(a, b) for a, (b, _) in PEOPLE.items()]
        for ax, these, title in zip(axes, (pairs, people), ("countries", "people"), strict=True):
            rows = np.array([[number[a], number[b]] for a, b in these])
            chosen = unit[rows.ravel()]
            _, _, directions = np.linalg.svd(chosen - chosen.mean(0), full_matrices=False)
            flat = ((chosen - chosen.mean(0)) @ directions[:2].T).reshape(-1, 2, 2)
            for (a, b), ends in zip(these, flat, strict=True):
                ax.plot(*ends.T, color="grey", linewidth=0.7)
                for word, at, colour in zip((a, b), ends, COLOURS, strict=False):
                    ax.scatter(*at, s=10, color=colour)
                    ax.annotate(word, at, fontsize=7)
            ax.set(title=title, xticks=[], yticks=[])

    return Result(claims, numbers, draw, size=(10.0, 4.2))
