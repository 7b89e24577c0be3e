"""How long the parts of a study take, about, before any of them ran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groundstate.study.design import Size
from groundstate.study.race import names

PART = 20  # fits that a part of the evidence takes, about


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
