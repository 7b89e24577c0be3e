r"""``explain``: which energy, rule, solver and inference a model uses.

Nothing here is written about any one model. The words are the docstrings of the parts, the formulas
their registered ones, and the parts are those the model itself names for a small table.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from textwrap import wrap
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from groundstate.compute.rows import real_dtype
from groundstate.energy.base import Energy
from groundstate.energy.spaces import Real
from groundstate.errors import Unsupported
from groundstate.infer.base import OPERATIONS
from groundstate.infer.dispatch import choose as choose_method
from groundstate.learn.base import Problem
from groundstate.learn.fit import choose as choose_solver
from groundstate.models.arrays import tensor
from groundstate.models.base import EnergyEstimator, Plan
from groundstate.models.networks.cam import cam, grad_cam
from groundstate.models.networks.inside import feature_maps, filters, maximise_activation
from groundstate.models.rows.kinds import KINDS, TABLE
from groundstate.models.tables.table import TablePredictor
from groundstate.models.words import formula, plain, sentences
from groundstate.registry import PartRow, Registry, energies, models, penalties, rules
from groundstate.registry import solvers as solver_rows

_PROBE_ROWS, _PROBE_COLUMNS = 24, 3


@dataclass(frozen=True)
class Part:
    """One part: its name, its formula (LaTeX) and what it does, in words."""

    name: str
    formula: str
    words: str


@dataclass(frozen=True)
class Answer:
    """How a question is answered: what is free, the operation and the method that does it."""

    free: str
    operation: str
    method: str
    exact: bool


@dataclass(frozen=True)
class Explanation:
    """What :func:`explain` found; ``str()`` is for reading, ``to_dict()`` for programs.

    Attributes
    ----------
    name, task, summary : str
    formula : str
        The model's own formula (LaTeX).
    spaces : dict
        Where each variable lives.
    energy, rule, solver : Part
    penalty : Part or None
    inference : tuple of Answer
    learned : dict
        What the solver did, for a fitted model.
    """

    name: str
    task: str
    summary: str
    formula: str
    spaces: dict[str, str]
    energy: Part
    rule: Part
    penalty: Part | None
    solver: Part
    inference: tuple[Answer, ...]
    learned: dict[str, Any] = field(default_factory=dict)
    preparation: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        where = ", ".join(f"{name} in {space}" for name, space in self.spaces.items())
        lines = [f"{self.name} ({self.task}): {self.summary}."]
        lines += [f"  {plain(self.formula)}"] if self.formula else []
        lines += [f"Columns: {self.preparation}"] if self.preparation else []
        lines += ["", *_lines("Energy", self.energy), f"  variables: {where}"]
        lines += _lines("Learning rule", self.rule)
        lines += _lines("Penalty", self.penalty) if self.penalty else []
        lines += _lines("Solver", self.solver)
        lines.append("Inference")
        for a in self.inference:
            sure = "exact" if a.exact else "approximate"
            lines.append(f"  {a.operation} {a.free}: {a.method} ({sure})")
        if self.learned:
            facts = ", ".join(f"{k} {v}" for k, v in self.learned.items())
            lines.append(f"Learned: {facts}")
        return "\n".join(lines)


def _lines(title: str, part: Part) -> list[str]:
    shown = [f"  {plain(part.formula)}"] if part.formula else []
    return [f"{title}: {part.name}", *shown, *(f"  {line}" for line in wrap(part.words, 88))]


def explain(model: Any) -> Explanation:
    """Tell in words and formulas which energy, rule, solver and inference a model uses.

    Parameters
    ----------
    model
        The name of a model, its class, an instance or a fitted instance.

    Examples
    --------
    >>> from groundstate import Ridge
    >>> facts = explain(Ridge())
    >>> facts.energy.name, facts.rule.name, facts.penalty.name, facts.solver.name
    ('SquaredEnergy', 'Naive', 'L2', 'LeastSquares')
    >>> print(plain(facts.energy.formula))
    e(x, y) = 1/2 ‖y - f(x)‖²
    """
    if isinstance(model, str):
        model = models[model].obj
    prepared = ""
    if isinstance(model, TablePredictor):
        if hasattr(model, "preparation_"):
            names = model.preparation_.feature_names_out()
            prepared = f"{model.n_features_in_} columns of the table become {len(names)} numbers"
        model = getattr(model, "estimator_", model.estimator)
    estimator = model() if isinstance(model, type) else model
    if not isinstance(estimator, EnergyEstimator):
        raise Unsupported(
            f"explain describes groundstate's models, and {type(estimator).__name__} has no "
            f"energy; there are {', '.join(models.names())}"
        )
    if type(estimator)._build is EnergyEstimator._build:
        raise Unsupported(
            f"explain describes models of rows, and {type(estimator).__name__} is fitted to something "
            "else"
        )
    plan, problem = _plan(estimator)
    energy = getattr(estimator, "energy_", plan.energy)
    cls = type(estimator)
    row = models.row_of(cls)
    solver = plan.solver if plan.solver is not None else choose_solver(problem)
    return Explanation(
        name=cls.__name__,
        task="model" if row is None else row.task,
        summary=sentences(cls).rstrip("."),
        formula=formula(cls),
        spaces={name: repr(space) for name, space in energy.spaces.items()},
        energy=_part(energy, energies),
        rule=_part(plan.rule, rules),
        penalty=None if plan.penalty is None else _part(plan.penalty, penalties),
        solver=_part(solver, solver_rows),
        inference=_answers(energy, draws=hasattr(cls, "sample")),
        learned=_learned(estimator),
        preparation=prepared,
    )


# what a network looks at is asked for as explain.cam(...), explain.grad_cam(...), explain.filters(...)
vars(explain).update(
    cam=cam, grad_cam=grad_cam, filters=filters, feature_maps=feature_maps,
    maximise_activation=maximise_activation,
)  # fmt: skip


def _plan(estimator: EnergyEstimator) -> tuple[Plan, Problem]:
    """The parts that a model names for a small table with the columns and classes it knows."""
    probe = clone(estimator)
    X: Any
    if estimator.rows == TABLE:
        columns = getattr(estimator, "n_features_in_", _PROBE_COLUMNS)
        X = np.random.default_rng(0).uniform(size=(_PROBE_ROWS, columns))
    else:
        X = _rows_like(estimator)
    X_, y_, encoded = probe._checked(X, _target(estimator, X))
    for name, value in encoded.items():
        setattr(probe, name, value)
    cpu = torch.device("cpu")
    xt, yt = tensor(X_, cpu), None if y_ is None else tensor(y_, cpu)
    plan = probe._build(xt, yt, None)
    plan.energy.to(cpu, real_dtype({"x": xt}))
    data = plan.data or ({"x": xt} if yt is None else {"x": xt, "y": yt})
    return plan, Problem(plan.energy, plan.rule, data, penalty=plan.penalty)


def _rows_like(estimator: EnergyEstimator) -> Any:
    """Rows that are no tables: of the form that was learned, which a network may insist on."""
    if hasattr(estimator, "energy_"):
        space = estimator.energy_.spaces.get("x")  # of a text, its words are the variable
        if isinstance(space, Real):
            return space.draw(_PROBE_ROWS, generator=torch.Generator().manual_seed(0))
    return KINDS[estimator.rows].example(_PROBE_ROWS)


def _target(estimator: EnergyEstimator, X: Any) -> NDArray[Any] | None:
    own: NDArray[Any] | None = estimator._example_target(X)
    if own is not None or not estimator._takes_target:
        return own
    if not (is_classifier(estimator) or estimator._takes_classes):
        values: NDArray[Any] = X.sum(1) if estimator.rows == TABLE else np.arange(float(len(X)))
        return values
    classes = getattr(estimator, "classes_", np.arange(3))
    return np.resize(classes, len(X))


def _part(obj: Any, rows: Registry[PartRow]) -> Part:
    """Name, registered formula and words of a part; also of parts that users wrote."""
    cls = type(obj)
    row = rows.row_of(cls)
    return Part(cls.__name__, row.formula if row else formula(cls), sentences(cls))


def _answers(energy: Energy, draws: bool) -> tuple[Answer, ...]:
    """Every question about one variable given the others, and x only where it has a distribution."""
    found = []
    for name in energy.spaces:
        if name == "x" and not (draws or "x" in energy.normalised):
            continue
        for operation in OPERATIONS:
            try:
                method = choose_method(energy, operation, name)
            except Unsupported:
                continue
            exact = bool(getattr(method, "exact", False))
            found.append(Answer(name, operation, type(method).__name__, exact))
    return tuple(found)


def _learned(estimator: EnergyEstimator) -> dict[str, Any]:
    history = getattr(estimator, "history_", None)
    if history is None:
        return {}
    facts: dict[str, Any] = {"steps": history.n_iter, "converged": bool(history.converged)}
    if history.objective:
        facts["objective"] = float(f"{history.objective[-1]:.6g}")
    return facts
