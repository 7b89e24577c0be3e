r"""Learning the equation of motion as a network."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import deepcopy
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions, callback_management_context
from groundstate.compute.random import Key
from groundstate.energy.networks.flow import FlowEnergy, StateField, TimeField
from groundstate.errors import DataError, NotConverged, ShapeError
from groundstate.learn import LBFGS, Naive
from groundstate.learn import fit as learn
from groundstate.learn.base import Solver
from groundstate.learn.train.stochastic import Stochastic
from groundstate.math.ode import METHODS, integrate
from groundstate.models.arrays import unwrap
from groundstate.models.base import EnergyEstimator
from groundstate.models.bridge import callbacks_of
from groundstate.models.physics.trajectories import trajectories_of
from groundstate.models.resident import places
from groundstate.nn.coordinate import CoordinateNet


class NeuralODE(EnergyEstimator):
    r"""The field of :math:`\dot y = f_\theta(t, y)` from trajectories.

    .. math:: e(x, y) = \tfrac12\sum_{k=1}^w\|\varphi_{t_k}(y_0) - y_k\|^2

    over windows of w observations: the state is carried from the first of a window through the others
    by the solver, and gradients go back through it, or by the adjoint equation, whose memory does not
    grow with the steps. Euler with one step of length 1 is a residual block.

    Parameters
    ----------
    f : module, or None
        The slope of times ``(B, 1)`` and states ``(B, d)``, copied. None is a network of the state.
    hidden : sequence of int
        Widths of that network.
    autonomous : bool
        Whether that network sees the state alone; else also the time.
    window : int
        Observations that one start is carried through.
    method : {"dopri5", "rk4", "midpoint", "heun", "euler"}
    steps : int
        From one observation to the next, for methods with fixed steps.
    rtol, atol : float
        Of dopri5.
    adjoint : bool
        Gradients by the adjoint equation.
    solver : {"lbfgs", "adam"}
    max_iter : int
        Steps of L-BFGS, or passes of Adam.
    lr : float
        Of Adam.
    batch_size : int
        Windows of a step of Adam.
    tol : float
        Largest entry of the gradient at the end of L-BFGS.

    Attributes
    ----------
    energy_ : FlowEnergy
    n_features_in_ : int, entries of a state

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> from groundstate import physics
    >>> t = np.linspace(0, 2, 11)
    >>> decay = [(t, np.exp(-t)[:, None] * y0) for y0 in (1.0, 2.0)]
    >>> class Line(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.a = nn.Linear(1, 1, bias=False)
    ...     def forward(self, t, y):
    ...         return self.a(y)
    >>> model = physics.NeuralODE(Line(), method="rk4", random_state=0).fit(decay)
    >>> round(model.field(0.0, [[1.0]]).item(), 3)
    -1.0
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "f": "no_validation",
        "hidden": ["array-like"],
        "autonomous": ["boolean"],
        "window": [Interval(Integral, 1, None, closed="left")],
        "method": [StrOptions({m for m in METHODS if m != "radau"})],
        "steps": [Interval(Integral, 1, None, closed="left")],
        "rtol": [Interval(Real, 0, None, closed="neither")],
        "atol": [Interval(Real, 0, None, closed="left")],
        "adjoint": ["boolean"],
        "solver": [StrOptions({"lbfgs", "adam"})],
        "lr": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
    }
    outside: ClassVar[str] = (
        "a row is a curve with times of its own and predict takes starts and times, so tables of rows and "
        "targets, folds and populations do not apply"
    )
    energy_: Any
    random_state: Any

    def __init__(
        self,
        f: Any = None,
        *,
        hidden: Sequence[int] = (32, 32),
        autonomous: bool = True,
        window: int = 1,
        method: str = "dopri5",
        steps: int = 1,
        rtol: float = 1e-6,
        atol: float = 1e-8,
        adjoint: bool = False,
        solver: str = "lbfgs",
        max_iter: int = 200,
        lr: float = 1e-2,
        batch_size: int = 256,
        tol: float = 1e-6,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from trajectories: a list of ``(t, Y)``, a pair ``(t, Y)`` with Y ``(n, m, d)``, a table or
        CSV file with columns id, t, y…; ``sample_weight`` has one weight for each trajectory.
        """
        self._validate_params()
        with callback_management_context(self):
            return self._follow(X, sample_weight)

    def _follow(self, X: Any, sample_weight: Any) -> Self:
        paths = trajectories_of(X)
        d = paths[0][1].shape[1]
        if any(states.shape[1] != d for _, states in paths):
            raise ShapeError("all trajectories need states of the same size")
        longest = max(len(t) for t, _ in paths)
        if longest <= self.window:
            raise DataError(
                f"window={self.window} needs trajectories of more than {self.window} observations, the "
                f"longest has {longest}; lower window"
            )
        rows, targets, weights = windows(
            paths, self.window, self._weights(sample_weight, len(paths))
        )
        key, device = Key.of(self.random_state), places(self, None)[0]
        energy = FlowEnergy(
            self._field(paths, d, key), d, self.window, self.method, self.steps, self.rtol, self.atol,
            self.adjoint,
        )  # fmt: skip
        energy.to(device, torch.float64)
        data = {"x": torch.as_tensor(rows).to(device), "y": torch.as_tensor(targets).to(device)}
        weight = None if sample_weight is None else torch.as_tensor(weights).to(device)
        mine, _ = callbacks_of(self, energy, X, None, sample_weight)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)  # a budget of steps, not a failure
            self.history_ = learn(
                energy, data, Naive(over="y"), self._solver(), sample_weight=weight, callbacks=mine,
                random_state=key.fold("learn"),
            )  # fmt: skip
        self.energy_, self.n_features_in_ = energy, d
        self.n_iter_ = max(1, self.history_.n_iter, len(self.history_.objective))
        return self

    def _solver(self) -> Solver:
        if self.solver == "adam":
            return Stochastic("adam", self.lr, self.batch_size, self.max_iter, tol=None)
        return LBFGS(self.max_iter, self.tol, memory=20, ftol=0.0)

    def _field(self, paths: Any, d: int, key: Key) -> nn.Module:
        if isinstance(self.f, nn.Module):
            return deepcopy(self.f)
        if self.f is not None:
            raise TypeError(
                f"f is a torch module of (t, y) whose parameters are learned, got {type(self.f).__name__}"
            )
        states = np.concatenate([y for _, y in paths])
        low, high = states.min(0).tolist(), states.max(0).tolist()
        if not self.autonomous:
            times = np.concatenate([t for t, _ in paths])
            low, high = [float(times.min()), *low], [float(times.max()), *high]
        net = CoordinateNet(
            len(low), d, tuple(self.hidden), low=low, high=high, generator=key.fold("init").torch()
        )
        return StateField(net) if self.autonomous else TimeField(net)

    def _weights(self, sample_weight: Any, n: int) -> NDArray[np.float64]:
        if sample_weight is None:
            return np.ones(n)
        w = np.asarray(unwrap(sample_weight)[0], dtype=np.float64)
        if w.shape != (n,) or (w < 0).any() or not w.sum() > 0:
            raise ValueError(f"sample_weight must be ({n},), one for each trajectory, at least 0")
        return w

    # --- answers -------------------------------------------------------------------------

    def predict(self, y0: Any, t: Any) -> NDArray[np.float64]:
        """States at the times t ``(m,)``, ``(m, d)`` from one start ``(d,)`` or ``(n, m, d)`` from several."""
        check_is_fitted(self, "energy_")
        start = np.array(unwrap(y0)[0], dtype=np.float64)
        rows = np.atleast_2d(start)
        if rows.shape[1] != self.n_features_in_:
            raise ShapeError(f"states have {self.n_features_in_} entries, got {rows.shape[1]}")
        device = self.energy_.placement()[0]
        kind: dict[str, Any] = {"steps": self.steps}
        if self.method == "dopri5":
            kind = {"rtol": self.rtol, "atol": self.atol, "rows": True}
        with torch.no_grad():
            states = integrate(
                self.energy_.field, torch.tensor(rows, device=device),
                torch.tensor(np.array(unwrap(t)[0], dtype=np.float64), device=device), self.method, **kind,
            )  # fmt: skip
        found: NDArray[np.float64] = states.transpose(0, 1).cpu().numpy()
        return found[0] if start.ndim == 1 else found

    def field(self, t: Any, y: Any) -> NDArray[np.float64]:
        """The learned slope at states ``(n, d)``."""
        check_is_fitted(self, "energy_")
        device = self.energy_.placement()[0]
        at = torch.as_tensor(np.atleast_2d(np.asarray(y, dtype=np.float64))).to(device)
        time = torch.full((len(at), 1), float(t), dtype=at.dtype, device=device)
        with torch.no_grad():
            return np.asarray(self.energy_.field(time, at).cpu().numpy())

    def energy(self, X: Any, y: Any = None, z: Any = None) -> NDArray[np.float64]:
        """Energy of every window of trajectories, in their order."""
        check_is_fitted(self, "energy_")
        rows, targets, _ = windows(paths := trajectories_of(X), self.window, np.ones(len(paths)))
        device = self.energy_.placement()[0]
        with torch.no_grad():
            e = self.energy_(
                x=torch.as_tensor(rows).to(device), y=torch.as_tensor(targets).to(device)
            )
        return np.asarray(e.cpu().numpy())

    def score(self, X: Any, y: Any = None) -> float:
        """R² of the states of trajectories, each followed from its first state."""
        paths = trajectories_of(X)
        predicted = np.concatenate([self.predict(states[0], t)[1:] for t, states in paths])
        true = np.concatenate([states[1:] for _, states in paths])
        return float(1 - ((predicted - true) ** 2).sum() / ((true - true.mean(0)) ** 2).sum())


def windows(
    paths: Any, width: int, weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Rows (times, first state), targets (the other states) and weights of all windows."""
    rows, targets, counts = [], [], []
    for (t, y), w in zip(paths, weights):
        starts = range(0, len(t) - width, width)
        rows += [np.concatenate([t[a : a + width + 1], y[a]]) for a in starts]
        targets += [y[a + 1 : a + width + 1].reshape(-1) for a in starts]
        counts += [w] * len(starts)
    return np.stack(rows), np.stack(targets), np.array(counts)
