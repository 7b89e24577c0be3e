"""How long the parts of a study take, about, before any of them ran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groundstate.study.design import Size
from groundstate.study.race import names

PART = 20  # fits that a part of the evidence takes, about
_QUICKEST, _SLOWEST = 0.5, 5.0  # times as long as nominal that fits are expected to take
_NOMINAL = 0.5  # nominal seconds that are believed until that many were measured


class Pace:
    """How long nominal seconds of fits take here, beside preparing the columns.

    Examples
    --------
    >>> pace = Pace()
    >>> pace.saw(1.5, 3.5)
    >>> pace.of(3.0)
    6.0
    """

    def __init__(self) -> None:
        self.nominal = self.measured = _NOMINAL

    def saw(self, nominal: float, seconds: float) -> None:
        """A fit of so many nominal seconds took so many."""
        self.nominal += nominal
        self.measured += max(seconds, 0.0)

    def of(self, nominal: float) -> float:
        """Seconds to expect: as the fits before, between half of nominal and five times that."""
        return min(max(self.measured / self.nominal, _QUICKEST), _SLOWEST) * nominal


def nominal_parts(
    candidates: Mapping[str, Any], size: Size, folds: int, tune: int, repeats: int, quick: bool
) -> dict[str, float]:
    """Nominal seconds of every part by its name: of fits, as the classes declare them.

    Parameters
    ----------
    candidates : models by name
    size : of the table
    folds : fits that compare one configuration
    tune : settings to try
    repeats : times that every row is judged
    quick : nothing follows the comparison of candidates

    Examples
    --------
    >>> from groundstate import Ridge
    >>> parts = nominal_parts({"Ridge": Ridge()}, Size(1000), 5, 10, 1, False)
    >>> parts["tuning"] == 10 * parts["Ridge"], parts["repeats"]
    (True, 0.0)
    """
    parts = {name: folds * size.of(model) for name, model in candidates.items()}
    if quick:
        return parts
    all_of_them = sum(parts.values())
    mean = all_of_them / max(len(parts), 1)
    parts |= dict.fromkeys(names.EVIDENCE, PART * mean / folds)
    parts[names.TUNING] = tune * mean
    parts[names.REPEATS] = (repeats - 1) * (all_of_them + tune * mean)
    return parts
