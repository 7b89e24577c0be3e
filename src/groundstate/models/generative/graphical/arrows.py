"""What the arrows of a Bayesian network say, by names of columns."""

from __future__ import annotations

from typing import Any

from groundstate.energy.graphical.by_class import ByClassEnergy
from groundstate.math.graphs import dags
from groundstate.models.generative.graphical.tabular import GraphOfColumns


class Arrows(GraphOfColumns):
    """Questions about the graph alone.

    Parameters
    ----------
    max_iter : int
        Iterations of EM at most.
    max_parents : int
        Of "hill_climbing".
    """

    @property
    def _above(self) -> list[list[int]]:
        energy: Any = self.energy_
        one: Any = energy.parts[0] if isinstance(energy, ByClassEnergy) else energy
        found: list[list[int]] = one.parents
        return found

    @property
    def parents_(self) -> dict[Any, list[Any]]:
        """The columns with an arrow to each column."""
        names = self._column_names
        return {names[i]: [names[p] for p in above] for i, above in enumerate(self._above)}

    @property
    def edges_(self) -> list[tuple[Any, Any]]:
        """Arrows (from, to)."""
        return [(p, child) for child, above in self.parents_.items() for p in above]

    def is_d_separated(self, x: Any, y: Any, z: Any = ()) -> bool:
        """Whether z blocks every path between x and y, so that they are independent given z.

        Each is a column or several, by name or number.
        """
        return dags.is_d_separated(self._above, *(self._numbers(v) for v in (x, y, z)))

    def markov_blanket(self, column: Any) -> list[Any]:
        """The columns that tell all that can be known about one: parents, children, co-parents."""
        names = self._column_names
        return [names[i] for i in sorted(dags.markov_blanket(self._above, self._number(column)))]

    def moral_graph(self) -> list[tuple[Any, Any]]:
        """Edges without direction: every arrow, and columns with a common child."""
        names = self._column_names
        return [(names[a], names[b]) for a, b in sorted(dags.moral_graph(self._above))]

    def plot(self, ax: Any = None, **settings: Any) -> Any:
        """Draw the graph, each column with what is known of it; see ``drawing.plot_network``."""
        from groundstate.models.generative.graphical.drawing import plot_network

        return plot_network(self, ax, **settings)
