"""How long a network learns where nobody says how many passes."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    r"""As many passes over n rows as make T steps of b rows, :math:`\lceil Tb/n\rceil`, between two bounds.

    A network learns in steps: six passes over a million rows are enough, and over sixty rows they are a
    dozen steps, after which it still answers by chance.

    Parameters
    ----------
    steps : T
    least, most : passes

    Examples
    --------
    >>> budget = Budget(600, least=6, most=300)
    >>> budget.epochs(60, 32), budget.epochs(1000, 32), budget.epochs(50_000, 32)
    (300, 20, 6)
    """

    steps: int
    least: int = 1
    most: int = 1000

    def epochs(self, rows: float, size: float) -> int:
        """Passes over so many rows in steps of ``size``."""
        wanted = math.ceil(self.steps * min(size, rows) / max(rows, 1.0))
        return max(self.least, min(self.most, wanted))
