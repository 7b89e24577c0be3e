r"""Integral curves of a slope field, as a picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import ShapeError
from groundstate.math.ode import FIXED, integrate

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class IntegralCurves:
    r"""Curves that are tangent to the field :math:`\dot y = f(t, y)` everywhere, from several starts.

    Parameters
    ----------
    f : slope of a time and a state; states are numbers, or of two entries for a phase portrait
    starts : ``(n,)`` or ``(n, 2)``
    t : times ``(m,)``
    method, steps : as in ``groundstate.ode.integrate``

    Attributes
    ----------
    curves : ``(m, n)`` or ``(m, n, 2)``

    Examples
    --------
    >>> curves = IntegralCurves(lambda t, y: -y, [1.0, 2.0], np.linspace(0, 1, 11))
    >>> curves.curves.shape, curves.tangency() < 0.05
    ((11, 2), True)
    """

    def __init__(
        self, f: Callable[[Any, Any], Any], starts: Any, t: Any, method: str = "rk4",
        steps: int | None = None,
    ) -> None:  # fmt: skip
        y = np.asarray(starts, dtype=np.float64)
        if y.ndim not in (1, 2) or (y.ndim == 2 and y.shape[1] != 2):
            raise ShapeError(f"starts are (n,) or (n, 2), got shape {y.shape}")
        self.f, self.t = f, np.asarray(t, dtype=np.float64)
        self.curves: NDArray[np.float64] = np.stack(
            [integrate(f, np.atleast_1d(one), self.t, method, steps, rows=False) for one in y], 1
        )
        self.plane = y.ndim == 2
        self.curves = self.curves if self.plane else self.curves[..., 0]

    def slope(self, t: float, y: Any) -> NDArray[np.float64]:
        return np.asarray(self.f(t, np.atleast_1d(np.asarray(y, dtype=np.float64))))

    def tangency(self) -> float:
        """Largest difference of the curves' slopes, by central differences, from the field."""
        chord = (self.curves[2:] - self.curves[:-2]) / (self.t[2:] - self.t[:-2]).reshape(
            -1, *[1] * (self.curves.ndim - 1)
        )
        field = np.array([
            [self.slope(t, y) for y in states] for t, states in zip(self.t[1:-1], self.curves[1:-1])
        ])  # fmt: skip
        return float(np.abs(chord - field.reshape(chord.shape)).max())

    def stages(self, t: float, y: float, h: float) -> list[tuple[float, float, float]]:
        """Where Runge and Kutta's four slopes are taken, and what they are: t, y and k of each."""
        table, found = FIXED["rk4"], []
        slopes: list[float] = []
        for a, c in zip(table.a, table.c):
            at = y + h * sum(w * k for w, k in zip(a, slopes))
            k = float(self.slope(t + c * h, at)[0])
            slopes.append(k)
            found.append((t + c * h, float(at), k))
        return found

    def plot(self, ax: Axes | None = None, arrows: int = 20, step: float | None = None) -> Axes:
        """Field and curves; with ``step``, the four slopes of one Runge-Kutta step of the first curve."""
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(5, 4), layout="constrained").add_subplot()
        if self.plane:
            self._portrait(ax, arrows)
        else:
            self._field(ax, arrows)
            if step is not None:
                self._stages(ax, step)
        return ax

    def _field(self, ax: Axes, arrows: int) -> None:
        low, high = float(self.curves.min()), float(self.curves.max())
        T, Y = np.meshgrid(
            np.linspace(self.t[0], self.t[-1], arrows), np.linspace(low, high, arrows)
        )
        K = np.array([self.slope(a, b)[0] for a, b in zip(T.ravel(), Y.ravel())]).reshape(T.shape)
        length = np.hypot(1, K)
        ax.quiver(T, Y, 1 / length, K / length, angles="xy", color="0.75", headwidth=1, headlength=0,
                  headaxislength=0, pivot="mid", width=0.003)  # fmt: skip
        ax.plot(self.t, self.curves)
        ax.set(xlabel="t", ylabel="y")

    def _portrait(self, ax: Axes, arrows: int) -> None:
        points = self.curves.reshape(-1, 2)
        (a, b), (c, d) = points.min(0), points.max(0)
        P, Q = np.meshgrid(np.linspace(a, c, arrows), np.linspace(b, d, arrows))
        K = np.array([self.slope(0.0, [p, q]) for p, q in zip(P.ravel(), Q.ravel())])
        K = K / np.maximum(np.linalg.norm(K, axis=1, keepdims=True), 1e-12)
        ax.quiver(
            P, Q, K[:, 0].reshape(P.shape), K[:, 1].reshape(P.shape), color="0.75", width=0.003
        )
        ax.plot(self.curves[..., 0], self.curves[..., 1])
        ax.set(xlabel="$y_1$", ylabel="$y_2$")

    def _stages(self, ax: Axes, h: float) -> None:
        first = self.curves if self.curves.ndim == 1 else self.curves[:, 0]
        for n, (t, y, k) in enumerate(self.stages(float(self.t[0]), float(first[0]), h), 1):
            half = h / 6
            ax.plot([t - half, t + half], [y - half * k, y + half * k], "k", lw=2)
            ax.annotate(f"$k_{n}$", (t, y), xytext=(4, 4), textcoords="offset points")
