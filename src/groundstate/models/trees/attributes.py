"""What ID3 and C4.5 share: columns of words, and answers from a branching energy."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils import Tags

from groundstate.models.roles import ProbabilisticClassifier
from groundstate.models.trees.inputs import TreeInputs


class AttributeTree(TreeInputs, ProbabilisticClassifier):
    """A classifier of rows of categories (and numbers); text is a category."""

    energy_: Any
    _single_class: ClassVar[bool] = True
    _text_levels: ClassVar[bool] = True

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
        """The tree as an indented outline, with class weights as shares."""
        e = self.energy_
        names = getattr(self, "feature_names_in_", None)
        lines: list[str] = []

        def write(v: int, depth: int) -> None:
            edge = "|   " * depth + "|--- "
            n, j = int(e.answers[v]), int(e.attribute[v])
            if n == 0:
                shares = ", ".join(f"{p:.4g}" for p in e.value[v].tolist())
                lines.append(f"{edge}class {self.classes_[int(e.value[v].argmax())]} [{shares}]")
                return
            name = f"x{j}" if names is None else str(names[j])
            levels = self._levels.get(j, np.empty(0))
            t = float(e.threshold[v])
            for c in range(n):
                word = f"{'<=' if c == 0 else '>'} {t!r}" if t == t else f"= {levels[c]}"
                lines.append(f"{edge}{name} {word}")
                write(int(e.first[v]) + c, depth + 1)

        write(0, 0)
        return "\n".join(lines)


__all__ = ["AttributeTree"]
