"""What trees take: NaN as a value, and columns of categories."""

from __future__ import annotations

from groundstate.energy.base import Energy
from groundstate.models.categories import CategoryInputs


class TreeInputs(CategoryInputs):
    """Rows with NaN and categories at the door of a tree model."""

    def _start(self, fresh: Energy) -> Energy:
        """The energy to learn: a new one, or with ``warm_start`` the one that is there."""
        old = getattr(self, "energy_", None)
        same = type(old) is type(fresh) and repr(old.spaces) == repr(fresh.spaces)
        return old if getattr(self, "warm_start", False) and same and old is not None else fresh

    def _category_sizes(self, d: int) -> tuple[int, ...] | None:
        """Levels per column, 0 for numbers; None when there are no categories."""
        if not self._levels:
            return None
        return tuple(len(self._levels[j]) if j in self._levels else 0 for j in range(d))


__all__ = ["TreeInputs"]
