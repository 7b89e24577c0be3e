r"""Physics-informed networks."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from groundstate.compute.foreign.sklearn import Interval, StrOptions, callback_management_context
from groundstate.compute.random import Key
from groundstate.energy.networks.residual import ResidualEnergy
from groundstate.errors import DataError, NotConverged
from groundstate.learn import Naive
from groundstate.learn import fit as learn
from groundstate.learn.base import History, Solver
from groundstate.learn.callbacks import Callback, Run
from groundstate.learn.solvers.lbfgs_resident import ResidentLBFGS
from groundstate.learn.train.stochastic import Stochastic
from groundstate.models.arrays import unwrap
from groundstate.models.bridge import callbacks_of
from groundstate.models.physics.hard import constrained
from groundstate.models.physics.measured import measurements
from groundstate.models.physics.points import TERMS, Rows, assembled
from groundstate.models.physics.problem import Problem
from groundstate.models.physics.renewed import equal_norms, moved
from groundstate.models.resident import places
from groundstate.models.roles import EnergyRegressor
from groundstate.nn.coordinate import CoordinateNet

OPTIMIZERS = ("adam+lbfgs", "adam", "lbfgs")


class PINN(EnergyRegressor):
    r"""A network that obeys an equation and its conditions, and goes through data.

    .. math:: J(\theta) = w_u\,\frac{1}{N_u}\sum_i|u_\theta(x_i) - u_i|^2
              + w_f\,\frac{1}{N_f}\sum_j|r(u_\theta, x_j)|^2

    over :math:`N_u` points of conditions (and as a term of its own :math:`N` measurements) and
    :math:`N_f` collocation points where the residual r of the equation is asked to vanish. Learning is
    full-batch Adam, then L-BFGS; derivatives of u come from Taylor-mode jets. Parameters of the problem
    that are None are learned with u from data and reported with a bootstrap interval.

    Parameters
    ----------
    problem : Problem
        Equation, domain and conditions; see ``groundstate.physics.library``.
    hidden : sequence of int
        Widths of the hidden layers.
    activation : {"tanh", "sine", "gelu", "sigmoid", "silu", "softplus"}
    fourier : int
        Random Fourier features of the coordinates, 0 for none.
    optimizer : {"adam+lbfgs", "adam", "lbfgs"}
    adam_steps, lbfgs_steps : int
        Steps of each at most.
    lr : float
        Of Adam.
    n_collocation, n_conditions : int
        :math:`N_f` and about :math:`N_u`.
    sampler : {"sobol", "lhs", "uniform"}
        How collocation points are drawn.
    weights : {"equal", "gradnorm"} or dict
        Weights of the terms "equation", "conditions" and "data"; "gradnorm" makes their gradients
        equally long.
    hard_bc : bool
        Values on sides hold by construction, :math:`u = g + \ell N_\theta`, instead of by a term.
    resample : bool or int
        How often half of the collocation points move to where :math:`|r|` is large; True is 3 times.
    tol : float
        L-BFGS stops when no entry of the gradient is larger.
    n_bootstrap : int
        Refits to resampled measurements behind the intervals of unknown parameters.
    level : float
        Of these intervals.
    dtype : {"float64", "float32"}

    Attributes
    ----------
    energy_ : ResidualEnergy
    parameters_ : dict
        Coefficients of the equation by name, given or found.
    intervals_ : dict
        Bootstrap interval of every coefficient that was found.
    loss_ : dict
        Mean squares of each term.
    n_points_ : dict
        Rows of each term.
    trace_ : dict
        Every coefficient that was found, after each step of L-BFGS.

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import physics
    >>> spring = physics.library["harmonic"](T=3.0)
    >>> model = physics.PINN(spring, hidden=(16,), n_collocation=64, optimizer="lbfgs",
    ...                      lbfgs_steps=300, random_state=0).fit()
    >>> t = np.linspace(0, 3, 50)[:, None]
    >>> bool(np.abs(model.predict(t) - np.cos(t[:, 0])).max() < 1e-2)
    True
    """

    _store_private: ClassVar[tuple[str, ...]] = ("_flat_target", "_column_target")
    outside: ClassVar[str] = (
        "it learns from the equations and conditions of a problem, with or without measurements; there are "
        "no rows that weights, folds and orders could be about"
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "problem": "no_validation",
        "hidden": ["array-like"],
        "activation": [str],
        "fourier": [Interval(Integral, 0, None, closed="left")],
        "optimizer": [StrOptions(set(OPTIMIZERS))],
        "adam_steps": [Interval(Integral, 1, None, closed="left")],
        "lbfgs_steps": [Interval(Integral, 1, None, closed="left")],
        "lr": [Interval(Real, 0, None, closed="neither")],
        "n_collocation": [Interval(Integral, 1, None, closed="left")],
        "n_conditions": [Interval(Integral, 1, None, closed="left")],
        "sampler": [StrOptions({"sobol", "lhs", "uniform"})],
        "weights": [StrOptions({"equal", "gradnorm"}), dict],
        "hard_bc": ["boolean"],
        "resample": ["boolean", Interval(Integral, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_bootstrap": [Interval(Integral, 0, None, closed="left")],
        "level": [Interval(Real, 0, 1, closed="neither")],
        "dtype": [StrOptions({"float64", "float32"})],
    }
    problem: Problem
    energy_: Any
    parameters_: dict[str, float]
    intervals_: dict[str, tuple[float, float]]
    loss_: dict[str, float]
    n_points_: dict[str, int]
    trace_: dict[str, list[float]]

    def __init__(
        self,
        problem: Any,
        hidden: Sequence[int] = (20, 20, 20, 20),
        *,
        activation: str = "tanh",
        fourier: int = 0,
        optimizer: str = "adam+lbfgs",
        adam_steps: int = 1000,
        lbfgs_steps: int = 5000,
        lr: float = 1e-3,
        n_collocation: int = 2000,
        n_conditions: int = 100,
        sampler: str = "sobol",
        weights: Any = "equal",
        hard_bc: bool = False,
        resample: Any = True,
        tol: float = 1e-9,
        n_bootstrap: int = 20,
        level: float = 0.95,
        dtype: str = "float64",
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    # --- learning ------------------------------------------------------------------------

    def fit(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Self:
        """Solve the equation, and go through measurements y ``(n[, m])`` at X ``(n, d)`` if given.

        NaN in y is a component that was not measured. A weight of 2 is the row twice.
        """
        self._validate_params()
        if not isinstance(self.problem, Problem):
            raise TypeError(
                f"PINN needs a physics.Problem, got {type(self.problem).__name__}; the library has "
                "such as groundstate.physics.library['burgers']()"
            )
        with callback_management_context(self):
            return self._solve(X, y, sample_weight)

    def _solve(self, X: Any, y: Any, sample_weight: Any) -> Self:
        problem, key = self.problem, Key.of(self.random_state)
        device = places(self, X)[0]
        measured = measurements(problem, X, y, sample_weight)
        names, m = problem.domain.names, len(problem.unknowns)
        self.n_features_in_, self._flat_target = len(names), m == 1
        net: Any = CoordinateNet(
            len(names), m, tuple(self.hidden), self.activation, self.fourier,
            problem.domain.low, problem.domain.high, generator=key.fold("init").torch(),
        )  # fmt: skip
        asked = problem
        if self.hard_bc:
            net, left = constrained(net, problem)
            asked = Problem(**{**vars(problem), "conditions": left})
        pieces = asked.pieces(self.n_conditions, key.fold("conditions")) if asked.conditions else []
        residual = problem.residual(pieces)
        if residual.learned and measured[0] is None:
            raise DataError(
                f"the parameters {', '.join(residual.learned)} are unknown, and without measurements "
                "nothing says what they are: pass fit(X, u)"
            )
        energy = ResidualEnergy(net, residual, len(names), m)
        energy.to(device, getattr(torch, self.dtype))
        start = problem.domain.sample(self.n_collocation, key.fold("collocation"), self.sampler)
        place = (device, getattr(torch, self.dtype))
        rows = assembled(asked, pieces, start, *measured, *place)
        self._check_equation(energy, rows)
        mine, _ = callbacks_of(self, energy, X, y, sample_weight)
        self.trace_ = {name: [] for name in residual.learned}
        self.history_ = History(solver=self.optimizer)
        rows = self._learn(energy, rows, key, mine)
        self.energy_ = energy
        self.n_iter_ = max(1, self.history_.n_iter)
        self._report(rows)
        self.intervals_ = self._bootstrap(rows, key) if residual.learned else {}
        return self

    def _learn(self, energy: ResidualEnergy, rows: Rows, key: Key, callbacks: list[Any]) -> Rows:
        """Adam, then L-BFGS, with points and weights renewed between segments."""
        moves = 3 if self.resample is True else int(self.resample)
        terms = self._terms()
        for at, (solver, renewed) in enumerate(self._schedule(moves)):
            if renewed:
                rows = rows.collocated(
                    moved(self.problem, energy, rows, key.fold("moved", at), self.sampler)
                )
            if self.weights == "gradnorm":
                terms = equal_norms(energy, rows)
            self._segment(energy, rows, terms, solver, key.fold("learn", at), callbacks)
        return rows

    def _schedule(self, moves: int) -> list[tuple[Solver, bool]]:
        """Solvers in sequence; whether points are drawn anew before each."""
        found: list[tuple[Solver, bool]] = []
        for name in self.optimizer.split("+"):
            last = name == self.optimizer.split("+")[-1]
            parts = moves + (self.optimizer != "adam+lbfgs") if last else 1
            if name == "adam" and self.weights == "gradnorm":
                parts = max(parts, 10)
            parts = max(1, parts)
            steps = self.adam_steps if name == "adam" else self.lbfgs_steps
            for part in range(parts):
                n = steps // parts + (part < steps % parts)
                if n:
                    found.append((self._solver(name, n), moves > 0 and bool(found) and last))
        return found

    def _solver(self, name: str, steps: int) -> Solver:
        if name == "adam":
            return Stochastic("adam", self.lr, None, steps, tol=None)
        return ResidentLBFGS(steps, self.tol)

    def _segment(
        self, energy: ResidualEnergy, rows: Rows, terms: Sequence[float], solver: Solver, key: Key,
        callbacks: list[Any],
    ) -> None:  # fmt: skip
        watch = [_Trace(energy, self.trace_)] if self.trace_ else []
        weight = rows.row_weights(terms)
        kinds = bool((rows.kind > 0).any())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotConverged)  # a budget of steps, not a failure
                history = learn(
                    energy, rows.data(kinds), Naive(over="y"), solver, sample_weight=weight,
                    callbacks=[*callbacks, *watch], random_state=key,
                )  # fmt: skip
        except FloatingPointError as error:
            raise FloatingPointError(
                f"learning {self.problem.text()!r} came to a loss that is no number; lower lr, or "
                f"scale the equation ({error})"
            ) from error
        scale = math.fsum(terms[t] for t in rows.present)
        mine = self.history_
        mine.objective += [scale * value for value in history.objective]
        mine.seconds += history.seconds
        mine.n_iter += max(history.n_iter, len(history.objective))
        mine.converged, mine.stop = history.converged, history.stop
        mine.about = history.about

    def _terms(self) -> list[float]:
        if not isinstance(self.weights, Mapping):
            return [1.0] * len(TERMS)
        unknown = [name for name in self.weights if name not in TERMS]
        if unknown or min(self.weights.values(), default=0) < 0:
            raise ValueError(
                f"weights are at least 0 and by the names {', '.join(TERMS)}, got {self.weights}"
            )
        return [float(self.weights.get(name, 1.0)) for name in TERMS]

    def _check_equation(self, energy: ResidualEnergy, rows: Rows) -> None:
        with torch.no_grad():
            r = energy.residuals(rows.x[rows.term == 0])
        bad = (~r.isfinite()).any(1)
        if bool(bad.any()):
            at = rows.x[rows.term == 0][bad][0].tolist()
            point = ", ".join(f"{c}={v:.4g}" for c, v in zip(self.problem.domain.names, at))
            raise FloatingPointError(
                f"the residual of {self.problem.text()!r} is NaN or infinite at {point}; check the "
                "equation there, such as a division by zero or a logarithm"
            )

    @torch.no_grad()
    def _report(self, rows: Rows) -> None:
        loss = self.energy_(**rows.data(bool((rows.kind > 0).any())))
        one = [1.0] * len(TERMS)
        parts = rows.row_weights(one) * loss
        self.loss_ = {TERMS[t]: float(parts[rows.term == t].sum()) for t in rows.present}
        self.n_points_ = {TERMS[t]: int((rows.term == t).sum()) for t in rows.present}
        self.parameters_ = self.energy_.residual.numbers()

    def _bootstrap(self, rows: Rows, key: Key) -> dict[str, tuple[float, float]]:
        """Intervals of the coefficients: refits from here to resampled measurements."""
        energy = self.energy_
        if not self.n_bootstrap:
            return {}
        state = {k: v.clone() for k, v in energy.state_dict().items()}
        data = rows.term == 2
        draws: dict[str, list[float]] = {name: [] for name in energy.residual.learned}
        steps = max(50, self.lbfgs_steps // 10)
        history, self.history_, trace, self.trace_ = self.history_, History(), self.trace_, {}
        chance = rows.weight[data].double().cpu()
        for b in range(self.n_bootstrap):
            energy.load_state_dict(state)
            generator = key.fold("bootstrap", b).torch()
            picked = torch.multinomial(chance, int(data.sum()), True, generator=generator)
            counts = torch.bincount(picked, minlength=len(chance)).to(rows.weight)
            weight = rows.weight.clone()
            weight[data] = counts
            again = Rows(rows.x, rows.y, rows.kind, rows.term, weight)
            self._segment(energy, again, self._terms(), self._solver("lbfgs", steps), key, [])
            for name, value in energy.residual.numbers().items():
                if name in draws:
                    draws[name].append(value)
        energy.load_state_dict(state)
        self.history_, self.trace_ = history, trace
        tail = (1 - self.level) / 2
        return {
            name: (float(np.quantile(v, tail)), float(np.quantile(v, 1 - tail)))
            for name, v in draws.items()
        }

    # --- answers -------------------------------------------------------------------------

    def predict_grid(
        self, shape: int | Sequence[int] = 101
    ) -> tuple[list[NDArray[Any]], NDArray[Any]]:
        """Axes and u on a grid of the domain, ``shape`` points along each coordinate.

        Outside of a mask u is NaN; a system has its components along the last axis.
        """
        check_is_fitted(self, "energy_")
        domain = self.problem.domain
        axes, X = domain.grid(shape)
        u = np.array(self.predict(X))
        u[~domain.contains(X)] = np.nan
        return axes, u.reshape(*map(len, axes), *u.shape[1:])

    def residual(self, X: Any) -> Any:
        """Residuals of the equation at points, ``(n,)``, or ``(n, q)`` for a system."""
        x, home = self._rows(X)
        with torch.no_grad():
            r = self.energy_.residuals(x)
        return home.give(r[:, 0] if r.shape[1] == 1 else r)

    def energy(self, X: Any, y: Any = None, z: Any = None) -> Any:
        """Squared residual at points, ``(n,)``; with values y the squared misfit instead."""
        x, home = self._rows(X)
        m = len(self.problem.unknowns)
        if y is None:
            values = x.new_full((len(x), m), torch.nan)
        else:
            values = torch.as_tensor(np.asarray(unwrap(y)[0])).to(x).reshape(len(x), m)
        with torch.no_grad():
            return home.give(self.energy_(x=x, y=values))


class _Trace(Callback):
    """Writes down learned coefficients after each step."""

    def __init__(self, energy: Any, into: dict[str, list[float]]) -> None:
        self.energy, self.into = energy, into

    def on_epoch(self, run: Run) -> bool | None:
        for name, value in self.energy.residual.numbers().items():
            if name in self.into:
                self.into[name].append(value)
        return None
