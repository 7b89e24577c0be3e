"""Few of our own classes stand between an estimator and scikit-learn: base, role, family, itself."""

from __future__ import annotations

from typing import Any

import pytest

from groundstate.registry import models

LIMIT = 4

# a family base that stands beside another one -> why one class more is right
ONE_MORE = {
    "GAN": "the one that insists on y is the same game",
    "TreeModel": "leaves of classes and of values are alike in a tree and in a forest",
    "CommitteeModel": "bags, votes and seeds draw and average members in the same way",
    "Stacking": "a stack is a vote whose answers a final estimator learns from",
    "ClosedFormClassifier": "counts of words and categories add smoothing to sums of moments",
    "JointLabels": "the k nearest rows and those within a radius vote on several labels",
    "NetworkModel": "networks are trained alike, whatever they answer",
    "TabularModel": "labels and values are read from the same network for tables",
    "TabularClassifier": "labels are told alike by networks that read numbers and by those that read words",
    "TabularRegressor": "values are told alike by networks that read numbers and by those that read words",
    "TextCNN": "words are read alike, whether labels or values are asked for",
    "Streamed": "planes and densities are learned from sums, of rows in memory or in pieces",
    "Mapped": "rows in a file are read as often as a fit needs, whatever the model",
    "GaussianFactors": "a density and a transformer at once: two roles, not one",
    "PCA": "batches of rows have the axes and the answers of all rows",
    "RowNetwork": "networks learn alike, whatever their rows are and whatever they answer",
    "TransferClassifier": "backbones, new heads and adaptation are alike for every kind of rows",
    "InGraph": "nodes and pairs of nodes see the same graph in one pass",
    "GraphRowNetwork": "graphs are taken alike, whether labels or numbers are asked for",
    "SequenceRows": "sequences are taken alike, whether labels or numbers are asked for",
    "TextNetwork": "labels of texts and of their words start from the same language models",
    "GraphOfColumns": "graphs of columns learn from gaps and fill them in alike, whatever the graph",
    "LevelsOfColumns": "columns become levels alike, with arrows between them or without",
    "Arrows": "the arrows say the same of tables and of Gaussians",
    "PairMetricLearner": "pairs and triplets are taken alike, whatever metric is learned from them",
    "NetworkGenerator": "generators around networks have one set of parameters and one engine",
    "LatentCode": "codes are walked, decoded and looked at alike, whatever made them",
    "ContinuousGenerator": "fields are followed alike, whether learned by likelihood or by regression",
    "GivenDistances": "distances in place of rows are taken alike by neighbours, groups and maps",
    "MixtureAnswers": "mixtures of Gaussians and of any other family answer alike",
}


def own_classes(cls: Any) -> list[str]:
    return [c.__name__ for c in cls.__mro__ if c.__module__.startswith("groundstate.")]


@pytest.mark.parametrize("name", models.names())
def test_the_chain_of_own_classes_is_short(name: str) -> None:
    chain = own_classes(models[name].obj)
    more = sum(base in ONE_MORE for base in chain)
    assert len(chain) <= LIMIT + more, f"{name} has {len(chain)} of our classes: {chain}"


def test_every_exception_is_needed() -> None:
    chains = [own_classes(row.obj) for row in models]
    for base in ONE_MORE:
        others = ONE_MORE.keys() - {base}
        assert any(len(chain) > LIMIT + sum(b in others for b in chain) for chain in chains), base
