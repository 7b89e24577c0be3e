"""What ID3 and C4.5 share: columns of words, and answers from a branching energy."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils import Tags

from groundstate.models.roles import EnergyClassifier
from groundstate.models.tables.categories import Categories
from groundstate.models.traits import Traits


class AttributeTree(EnergyClassifier):
    """A classifier of rows of categories (and numbers); text is a category.

    Parameters
    ----------
    device : str or torch.device
        Where to predict; None is where X is.

    Attributes
    ----------
    energy_ : BranchingEnergy
    """

    traits = Traits(single_columns=True)

    energy_: Any
    _runs_on: Any = "cpu"  # attributes branch on the CPU
    _single_class: ClassVar[bool] = True
    _categories: ClassVar[Any] = Categories(text=True)
    _allow_nan: ClassVar[bool] = True
    _accept_sparse: ClassVar[bool | str] = False  # zero is a value like others

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def predict(self, X: Any) -> Any:
        """Labels of lowest energy, ``(n_samples,)``."""
        x, home = self._rows(X)
        best = self.energy_.probabilities(x).argmax(1)
        return home.give(self.classes_[best.cpu().numpy()])

    def predict_proba(self, X: Any) -> Any:
        """Class shares of the leaves, ``(n_samples, n_classes)``."""
        x, home = self._rows(X)
        return home.give(self.energy_.probabilities(x))

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the class shares, ``(n_samples, n_classes)``."""
        x, home = self._rows(X)
        with torch.no_grad():
            return home.give(self.energy_.probabilities(x).log())

    def export_text(self) -> str:
        """The tree as an indented outline, with class shares in the leaves."""
        lines: list[str] = []

        def write(v: int, depth: int) -> None:
            edge = "|   " * depth + "|--- "
            answers = self._answers(v)
            if not answers:
                lines.append(edge + self._node_text(v))
            for words, child in answers:
                lines.append(edge + words)
                write(child, depth + 1)

        write(0, 0)
        return "\n".join(lines)

    def rules(self) -> list[str]:
        """One sentence per leaf: ``if a = x and b <= 2.5 then class c [shares]``."""
        found: list[str] = []

        def walk(v: int, way: tuple[str, ...]) -> None:
            answers = self._answers(v)
            if not answers:
                head = f"if {' and '.join(way)} then " if way else ""
                found.append(head + self._node_text(v))
            for words, child in answers:
                walk(child, (*way, words))

        walk(0, ())
        return found

    def _node_text(self, v: int) -> str:
        value = self.energy_.value[v]
        shares = ", ".join(f"{p:.4g}" for p in value.tolist())
        return f"class {self.classes_[int(value.argmax())]} [{shares}]"

    def _answers(self, v: int) -> list[tuple[str, int]]:
        """The answers to the question of a node, in words, and the nodes they lead to."""
        e = self.energy_
        n, j, t = int(e.answers[v]), int(e.attribute[v]), float(e.threshold[v])
        if n == 0:
            return []
        names = getattr(self, "feature_names_in_", None)
        name = f"x{j}" if names is None else str(names[j])
        levels = self._levels.get(j, np.empty(0))
        words = [
            f"{'<=' if c == 0 else '>'} {t!r}" if t == t else f"= {levels[c]}" for c in range(n)
        ]
        return [(f"{name} {word}", int(e.first[v]) + c) for c, word in enumerate(words)]
