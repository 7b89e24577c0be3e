"""What is known about well-known sets: contents, counts, and how a copy on disk looks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from groundstate.errors import DataError

ANY = math.inf
Range = tuple[float, float]


def _exactly(n: int) -> Range:
    return (n, n)


def _about(n: int) -> Range:
    """Versions of a set differ by a few in a hundred."""
    return (0.95 * n, 1.05 * n)


@dataclass(frozen=True)
class Card:
    """A set by name.

    Attributes
    ----------
    name, about : what it is called, and what it holds
    home : where its makers offer it; nothing is downloaded
    layout : how a copy on disk looks
    counts : least and largest number of each thing in a complete copy
    """

    name: str
    about: str
    home: str
    layout: str
    counts: Mapping[str, Range] = field(default_factory=dict)

    def check(self, found: Mapping[str, float]) -> None:
        """Say what a copy lacks.

        >>> CARDS["MNIST"].check({"train": 60_000, "test": 10_000, "classes": 10})
        >>> CARDS["MNIST"].check({"train": 59_999, "test": 10_000, "classes": 10})
        Traceback (most recent call last):
        groundstate.errors.DataError: this copy of MNIST has 59,999 train, a complete one has 60,000; \
pass check=False to read a part
        """
        for what, (low, high) in self.counts.items():
            n = found.get(what, 0)
            if not low <= n <= high:
                raise DataError(
                    f"this copy of {self.name} has {n:,} {what}, a complete one has {_words(low, high)}; "
                    "pass check=False to read a part"
                )


def _words(low: float, high: float) -> str:
    if low == high:
        return f"{int(low):,}"
    return f"{int(low):,} or more" if high == ANY else f"{int(low):,} to {int(high):,}"


CARDS: dict[str, Card] = {
    card.name: card
    for card in (
        Card(
            "MNIST",
            "70,000 handwritten digits, grey, 28 x 28",
            "http://yann.lecun.com/exdb/mnist",
            "folder with train-images-idx3-ubyte[.gz], t10k-... and their labels",
            {"train": _exactly(60_000), "test": _exactly(10_000), "classes": _exactly(10)},
        ),
        Card(
            "CIFAR-10",
            "60,000 photographs of 10 things, 6,000 each, 3 x 32 x 32",
            "https://www.cs.toronto.edu/~kriz/cifar.html",
            "folder cifar-10-batches-py with five batches, test_batch and batches.meta",
            {"train": _exactly(50_000), "test": _exactly(10_000), "classes": _exactly(10),
             "least of a class": _exactly(6_000), "most of a class": _exactly(6_000)},
        ),
        Card(
            "ImageNet",
            "more than 14 million photographs of more than 20,000 nouns of WordNet",
            "https://www.image-net.org",
            "folder with one folder of pictures for each synset, n01440764/...",
            {"pictures": (14_000_001, ANY), "classes": (20_001, ANY)},
        ),
        Card(
            "LSUN",
            "10 kinds of scenes, 120,000 to 3 million photographs each; 300 of each to validate, 1,000 to test",
            "https://www.yf.io/p/lsun",
            "folders bedroom_train, bedroom_val, ..., test, with exported pictures at any depth",
            {"classes": _exactly(10), "least of a class": (120_000, ANY),
             "most of a class": (120_000, 3_100_000), "least of validation": _exactly(300),
             "most of validation": _exactly(300), "test": _exactly(1_000)},
        ),
        Card(
            "LAION",
            "addresses of photographs of the web with the text beside them",
            "https://laion.ai",
            "parquet files with the columns URL and TEXT, one or a folder of them",
            {"pairs": (1, ANY)},
        ),
        Card(
            "ShapeNetCore",
            "about 51,300 three-dimensional models of 55 common categories",
            "https://shapenet.org",
            "folder with one folder for each synset, 02691156/, and in it one for each model",
            {"models": _about(51_300), "classes": _exactly(55)},
        ),
        Card(
            "ShapeNetSem",
            "12,000 three-dimensional models of 270 categories, with sizes and materials",
            "https://shapenet.org",
            "metadata.csv with the columns fullId and category, or the folder around it",
            {"models": _about(12_000), "classes": _about(270)},
        ),
        Card(
            "WordNet",
            "more than 100,000 sets of synonyms of English and how they are related",
            "https://wordnet.princeton.edu",
            "folder dict with data.noun, data.verb, data.adj and data.adv",
            {"synsets": (100_001, ANY)},
        ),
    )
}  # fmt: skip
