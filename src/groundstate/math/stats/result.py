"""What a statistical test found, in numbers and in one sentence."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

Alternative = Literal["two-sided", "less", "greater"]


@dataclass(frozen=True)
class TestResult:
    r"""A test of a null hypothesis :math:`H_0`.

    .. math:: p = P(\text{a statistic at least as extreme} \mid H_0)

    A large p does not show that :math:`H_0` holds: it is "not rejected", never "accepted".

    Attributes
    ----------
    statistic : float
    pvalue : float
    null : str
        :math:`H_0` in words.
    method : str
        Name of the test.
    df : float, tuple or None
        Degrees of freedom.
    alternative : ``"two-sided"``, ``"less"`` or ``"greater"``
    estimate : float or None
        What was estimated, such as a difference of means.
    interval : (low, high) or None
        Confidence interval of the estimate at ``level``.
    level : float
    effect_size : float or None
        Hedges g for t tests.
    n : int or tuple
        Rows, or rows of each group.

    Examples
    --------
    >>> found = TestResult(-4.2, 0.0007, "equal means", "Welch t", df=15.9, estimate=-9.3)
    >>> print(found)
    Welch t: the estimate -9.3 is below what 'equal means' says (statistic -4.2, df 15.9, p 0.0007),
    which is rejected at 5 %.
    >>> found.reject(1e-4)
    False
    """

    __test__ = False  # not a test class for pytest

    statistic: float
    pvalue: float
    null: str
    method: str
    df: float | tuple[float, ...] | None = None
    alternative: Alternative = "two-sided"
    estimate: float | None = None
    interval: tuple[float, float] | None = None
    level: float = 0.95
    effect_size: float | None = None
    n: int | tuple[int, ...] = 0

    def reject(self, alpha: float = 0.05) -> bool:
        """Whether p is at most ``alpha``."""
        if not 0 < alpha < 1:
            raise ValueError(f"alpha is a probability between 0 and 1, got {alpha}")
        return self.pvalue <= alpha

    def __str__(self) -> str:
        verdict = "rejected at 5 %" if self.reject() else "not rejected at 5 %"
        inside = [f"statistic {self.statistic:.4g}"]
        if self.df is not None:
            each = self.df if isinstance(self.df, tuple) else (self.df,)
            inside.append("df " + ", ".join(f"{d:.4g}" for d in each))
        inside.append(f"p {self.pvalue:.3g}")
        if self.interval is not None:
            low, high = self.interval
            inside.append(f"{self.level:.0%} interval {low:.4g} to {high:.4g}")
        numbers = ", ".join(inside)
        if math.isnan(self.pvalue):
            return f"{self.method}: these rows cannot tell whether '{self.null}' ({numbers})."
        if self.estimate is None:
            return f"{self.method}: '{self.null}' is {verdict} ({numbers})."
        side = "below" if self.statistic < 0 else "above" if self.statistic > 0 else "equal to"
        return (
            f"{self.method}: the estimate {self.estimate:.4g} is {side} what '{self.null}' says "
            f"({numbers}), which is {verdict}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def tail(alternative: str) -> Alternative:
    """The alternative, or an error that lists them."""
    if alternative not in ("two-sided", "less", "greater"):
        raise ValueError(
            f"alternative must be 'two-sided', 'less' or 'greater', got {alternative!r}"
        )
    return alternative  # type: ignore[return-value]
