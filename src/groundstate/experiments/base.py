r"""Experiments: seeded runs that check a claim and end in a verdict and a picture.

An experiment is a function of its seed in a file of its own, registered by decorator:

.. code-block:: python

    @experiment("ENE-X-collapse", theme="energy", title="Lowering data energy alone fails")
    def collapse(seed: int = 0, *, quick: bool = False) -> Result: ...

It is run by ``get("ENE-X-collapse").run(seed=0)``. ``quick`` reduces repeats, or epochs and sizes
where the experiment says so, never tolerances.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from groundstate import registry
from groundstate.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:  # matplotlib is imported when a picture is asked for
    Axes = Figure = Any

COLOURS = ("#3b6fb6", "#d9822b", "#4c9f70", "#a05195", "#b23a48", "#6b7280")
STYLE: Any = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": "medium",
    "font.size": 9.0,
    "legend.frameon": False,
    "legend.fontsize": "small",
    "svg.fonttype": "none",
    "svg.hashsalt": "groundstate",  # element ids by content: the same picture is the same bytes
}


def _settle(figure: Figure, digits: int = 4) -> None:
    """Lay the panels out once and round their places, so that the same picture is the same bytes.

    The solver of the layout answers by the order of addresses in memory, in the last digits.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for ax in figure.axes:
        left, low, width, height = (
            round(side, digits) for side in ax.get_position(original=True).bounds
        )
        ax.set_position((left, low, width, height))


@dataclass(frozen=True)
class Claim:
    r"""One statement of an experiment, with the number that decides it.

    The named constructors compare and put the criterion into words; ``holds`` is never computed
    by hand where one of them fits.

    Parameters
    ----------
    text : what is claimed, in words
    value : what came out
    expected : the criterion in words, for example "at most 5"
    holds : whether it came out
    timed : whether the number is a time, which depends on the machine and not on the seed

    Examples
    --------
    >>> Claim.close("mean of the posterior", 2.2503, 2.25, tol=1e-3)
    Claim(text='mean of the posterior', value=2.2503, expected='2.25 ± 0.001', holds=True, timed=False)
    >>> Claim.at_least("accuracy", 0.91, 0.93).holds
    False
    """

    text: str
    value: Any
    expected: str
    holds: bool
    timed: bool = False

    def on_the_clock(self) -> Claim:
        """The same claim, marked as one about time."""
        return replace(self, timed=True)

    @classmethod
    def close(cls, text: str, value: float, expected: float, *, tol: float) -> Claim:
        """Claim that a number lies within ``tol`` of the expected one."""
        holds = abs(float(value) - float(expected)) <= float(tol)
        return cls(text, float(value), f"{expected:.10g} ± {tol:g}", holds)

    @classmethod
    def between(cls, text: str, value: float, low: float, high: float) -> Claim:
        """Claim that a number lies in [low, high]."""
        return cls(text, float(value), f"{low:g} to {high:g}", low <= float(value) <= high)

    @classmethod
    def at_most(cls, text: str, value: float, bound: float) -> Claim:
        """Claim that a number is at most the bound."""
        return cls(text, float(value), f"at most {bound:g}", float(value) <= bound)

    @classmethod
    def at_least(cls, text: str, value: float, bound: float) -> Claim:
        """Claim that a number is at least the bound."""
        return cls(text, float(value), f"at least {bound:g}", float(value) >= bound)

    @classmethod
    def below(cls, text: str, value: float, bound: float) -> Claim:
        """Claim that a number is smaller than the bound."""
        return cls(text, float(value), f"below {bound:g}", float(value) < bound)

    @classmethod
    def above(cls, text: str, value: float, bound: float) -> Claim:
        """Claim that a number is greater than the bound."""
        return cls(text, float(value), f"above {bound:g}", float(value) > bound)

    @classmethod
    def equal(cls, text: str, value: Any, expected: Any) -> Claim:
        """Claim that two plain values (counts, words, booleans, lists of them) are equal."""
        return cls(text, value, str(expected), bool(value == expected))


@dataclass(frozen=True)
class Result:
    r"""What a run ends in: claims, the numbers behind them, and a picture.

    Parameters
    ----------
    claims : the statements that were checked; at least one
    numbers : named results, plain numbers or lists of them; a function of the seed alone
    draw : draws the picture on an empty matplotlib ``Figure``
    seconds : measured times, kept apart because they are not a function of the seed
    size : width and height of the picture in inches

    Examples
    --------
    >>> result = Result([Claim.below("error", 0.1, 1.0)], {"error": 0.1}, lambda figure: None)
    >>> result.verdict
    True
    >>> result.to_dict()["claims"][0]["expected"]
    'below 1'
    """

    claims: Sequence[Claim]
    numbers: Mapping[str, Any]
    draw: Callable[[Figure], None] = field(repr=False, compare=False)
    seconds: Mapping[str, Any] = field(default_factory=dict, compare=False)
    size: tuple[float, float] = field(default=(8.0, 3.6), compare=False)

    def __post_init__(self) -> None:
        if not self.claims:
            raise DataError("a Result has no claims; an experiment checks at least one.")

    @property
    def verdict(self) -> bool:
        """Whether every claim holds."""
        return all(claim.holds for claim in self.claims)

    def figure(self) -> Figure:
        """The picture as a matplotlib figure that belongs to no window."""
        import matplotlib
        from matplotlib.figure import Figure

        with matplotlib.rc_context(STYLE):
            figure = Figure(figsize=self.size, layout="constrained")
            self.draw(figure)
            _settle(figure)
        return figure

    def picture(self, path: str | Path | IO[bytes], *, format: str | None = None) -> None:
        """Write the picture; the same result gives the same bytes.

        Parameters
        ----------
        path : file name (.svg, .png or .pdf) or a binary file
        format : for a binary file, default "svg"
        """
        import matplotlib

        if isinstance(path, str | Path):
            format = format or (Path(path).suffix.lstrip(".").lower() or "svg")
        format = format or "svg"
        dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}
        if format not in dates:
            raise DataError(f"a picture cannot be written as {format!r}; use svg, png or pdf.")
        with matplotlib.rc_context(STYLE):
            self.figure().savefig(path, format=format, metadata=dates[format], dpi=120)

    def to_dict(self) -> dict[str, Any]:
        """Verdict, claims, numbers and times as plain data."""
        rows = [
            {"text": c.text, "value": c.value, "expected": c.expected, "holds": c.holds}
            for c in self.claims
        ]
        return {
            "verdict": self.verdict,
            "claims": rows,
            "numbers": dict(self.numbers),
            "seconds": dict(self.seconds),
        }


class Run(Protocol):
    """A seeded run: the function an experiment is made of."""

    def __call__(self, seed: int = 0, *, quick: bool = False) -> Result: ...


class Experiment:
    """A registered run with its id, theme and title; the docstring states the claim and formula.

    Parameters
    ----------
    run : function of the seed
    id, theme, title : what lists show
    slow : whether a run takes more than a few seconds
    """

    def __init__(self, run: Run, id: str, theme: str, title: str, slow: bool = False) -> None:
        self.id = id
        self.theme = theme
        self.title = title
        self.slow = slow
        self._run = run
        functools.update_wrapper(self, run)

    def run(self, seed: int = 0, *, quick: bool = False) -> Result:
        """Run with a seed; the same seed gives the same claims and numbers."""
        return self._run(seed, quick=quick)

    __call__ = run

    def __repr__(self) -> str:
        return f"<experiment {self.id}: {self.title}>"


def experiment(
    id: str, *, theme: str, title: str, slow: bool = False
) -> Callable[[Run], Experiment]:
    """Return a decorator that registers a run under its id.

    Parameters
    ----------
    id : for example "ENE-X-collapse"
    theme : for example "energy"
    title : the claim in a few words
    slow : takes more than a few seconds
    """

    def add(run: Run) -> Experiment:
        made = Experiment(run, id, theme, title, slow)
        return registry.experiments.register(id, theme=theme, title=title)(made)

    return add


def get(id: str) -> Experiment:
    """Return an experiment by its id; an unknown id raises with the nearest known one.

    Examples
    --------
    >>> get("ENE-X-collapse").theme
    'energy'
    """
    made: Experiment = registry.experiments[id].obj
    return made
