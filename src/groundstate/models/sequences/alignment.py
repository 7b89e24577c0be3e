"""Where a decoder looked while it wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class Alignment:
    """Attention of each written token to the tokens of the source.

    Attributes
    ----------
    weights : ``(target tokens, source tokens)``; rows sum to 1
    source, target : the tokens

    Examples
    --------
    >>> Alignment(np.eye(2), ["two", "dogs"], ["zwei", "Hunde"])
    Alignment: zwei ← two, Hunde ← dogs
    """

    weights: NDArray[Any]
    source: Sequence[str]
    target: Sequence[str]

    def __repr__(self) -> str:
        best = self.weights.argmax(1)
        pairs = [f"{w} ← {self.source[i]}" for w, i in zip(self.target, best)]
        return f"Alignment: {', '.join(pairs[:12])}{', …' if len(pairs) > 12 else ''}"

    def plot(self, ax: Any = None) -> Any:
        """A heat map, source below and target at the side."""
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(layout="constrained").subplots()
        ax.imshow(np.asarray(self.weights), cmap="Blues", vmin=0.0, vmax=1.0)
        ax.set_xticks(range(len(self.source)), self.source, rotation=45, ha="right")
        ax.set_yticks(range(len(self.target)), self.target)
        return ax
