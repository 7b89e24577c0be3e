"""Members of a population of estimators: each one's plan, the run of all, what it leaves behind."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from sklearn.base import clone
from torch import Tensor

from groundstate.compute.device import resolve_device
from groundstate.compute.dropout import keyed_dropout, plain_dropouts
from groundstate.compute.random import Key, seeded
from groundstate.energy.base import Energy
from groundstate.errors import NotApplicable, NotConverged, Unsupported
from groundstate.learn.base import History
from groundstate.learn.solvers.networks.descent import Descent
from groundstate.learn.solvers.networks.estimator import NetworkTraining, held_out_parts
from groundstate.learn.train.population.learn import fit_population
from groundstate.learn.train.population.stop import Judge, Stop
from groundstate.learn.train.stochastic import Stochastic
from groundstate.models.arrays import tensor
from groundstate.models.base import Plan
from groundstate.models.networks.seeds import order_key

_FORMATS = ("auto", "32", "bf16")  # of products; others scale losses or set a state of torch
_PROBE = 4  # rows on which a network is watched for randomness that has no key


@dataclass
class Member:
    """One estimator of a population."""

    model: Any
    plan: Plan
    key: Key
    given: Tensor | None  # weights of the rows, None: one each  # (N,)
    learns: Tensor | None  # without those that are held out  # (N,)
    judge: Judge | None
    total: float

    @property
    def training(self) -> Any:
        return self.plan.solver

    @property
    def kind(self) -> tuple[Any, ...]:
        """What members of one run share."""
        training, solver = self.training, self.training.solver
        descent = solver.optimizer
        nesterov = descent.nesterov and descent.momentum > 0
        settings = solver.batch_size, solver.max_epochs, solver.clip_norm is None, solver.precision
        watched = self.judge is None
        return (*settings, training.tol, training.patience, descent.kind, nesterov, watched)


class Rows:
    """Rows and targets, checked once for estimators of one class."""

    def __init__(self, X: Any, y: Any) -> None:
        self.X, self.y = X, y
        self.data: dict[str, Tensor] | None = None
        self.known: dict[str, Any] | None = None

    def of(self, model: Any) -> dict[str, Tensor]:
        """The tensors, with what belongs to them set on the model."""
        if self.known is None:
            before = set(vars(model))
            self.checked, self.target, encoded = model._checked(self.X, self.y)
            self.known = {k: v for k, v in vars(model).items() if k not in before} | encoded
        for name, value in self.known.items():
            setattr(model, name, value)
        X, where = self.checked, getattr(model, "device", None)
        device = X.device if where is None and isinstance(X, Tensor) else resolve_device(where)
        if self.data is None or self.data["x"].device != device:
            x = tensor(X, device)
            if not isinstance(x, Tensor):
                raise NotApplicable("rows that are no tensor are learned from one fit at a time")
            dense = x if x.layout == torch.strided else x.to_dense()
            self.data = {"x": dense, "y": tensor(self.target, device)}
        return self.data

    def weight(self, model: Any, weight: NDArray[Any] | None) -> Tensor | None:
        assert self.data is not None
        checked = model._checked_weight(weight, self.checked)
        own = model._row_weight(self.target, checked)
        return None if own is None else tensor(own, self.data["x"].device)


def plan_member(
    base: Any, changes: Mapping[str, Any], rows: Rows, weight: NDArray[Any] | None
) -> Member | None:
    """A clone with these settings and its plan; None where it must be fitted alone."""
    model: Any = clone(base).set_params(**changes)
    model._validate_params()
    if any(getattr(model, name, None) for name in ("callbacks", "warm_start", "verbose")):
        return None
    data = rows.of(model)
    own = rows.weight(model, weight)
    plan = model._build(data["x"], data["y"], own)
    if plan.data is not None and plan.data["x"] is not data["x"]:
        raise NotApplicable("rows that each fit prepares in its own way are not shared")
    plan.energy.to(data["x"].device, data["x"].dtype)
    if not _able(plan):
        return None
    training: Any = plan.solver
    key = order_key(getattr(model, "random_state", 0))
    learns, judge = own, None
    if training.held_out > 0:
        parts = held_out_parts(data, own, training.held_out, key, training.stratify)
        learns, held = (torch.from_numpy(part) for part in parts)
        judge = _judge(training.score, data, held)
    total = float(len(data["x"]) if learns is None else learns.double().sum())
    return Member(model, plan, key, own, learns, judge, total)


def _able(plan: Plan) -> bool:
    training = plan.solver
    if not isinstance(training, NetworkTraining) or not isinstance(training.solver, Stochastic):
        return False
    solver = training.solver
    if not isinstance(solver.optimizer, Descent) or solver.optimizer.scale:
        return False
    plain = solver.precision in _FORMATS and not solver.compile and solver.schedule != "plateau"
    return plain and training.rates == "constant" and training.shuffle and training.parts is None


def _noisy(energy: Energy) -> bool:
    """Whether it matters which rows stand beside which: masks and norms see places."""
    drops = any(layer.p > 0 for *_, layer in plain_dropouts(energy))
    return drops or any(True for _ in energy.buffers())


def _judge(score: Any, data: Mapping[str, Tensor], held: Tensor) -> Judge:
    device, dtype = data["x"].device, data["x"].dtype
    index = held.nonzero().squeeze(1).to(device)
    rows = {name: v.index_select(0, index) for name, v in data.items()}
    weight = held[held > 0].to(device, dtype)
    return lambda energy: float(score(energy, rows, weight))


def keyed(member: Member, data: Mapping[str, Tensor]) -> bool:
    """Whether all randomness of a network in training is that of dropout layers, which has keys."""
    energy = copy.deepcopy(member.plan.energy)
    rule = copy.deepcopy(member.plan.rule)
    rows = {name: v[:_PROBE] for name, v in data.items()}
    with seeded(Key.of(0)), keyed_dropout(energy, Key.of(0)), torch.no_grad():
        before = [torch.get_rng_state()]
        on_card = data["x"].device.type == "cuda"
        if on_card:
            before.append(torch.cuda.get_rng_state(data["x"].device))
        energy.train()
        with torch.enable_grad():
            rule.mean(energy, rows)
        after = [torch.get_rng_state()]
        if on_card:
            after.append(torch.cuda.get_rng_state(data["x"].device))
    return all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def learn_members(members: Sequence[Member], data: Mapping[str, Tensor]) -> None:
    """Train members of one kind as one program."""
    training = members[0].training
    descents = [m.training.solver.optimizer for m in members]
    kind = descents[0].kind
    name = "nesterov" if kind == "sgd" and descents[0].nesterov else kind
    settings: dict[str, Any] = {"momentum": [d.momentum for d in descents]}
    if kind != "sgd":
        beta1, beta2 = zip(*(d.betas for d in descents), strict=True)
        settings = {"beta1": beta1, "beta2": beta2, "eps": [d.eps for d in descents]}
        if kind == "adamw":
            settings["weight_decay"] = [d.decay for d in descents]
    elif not any(settings["momentum"]):
        name, settings = "sgd", {}

    def stop(chosen: list[int]) -> Stop:
        judges = [judge for i in chosen if (judge := members[i].judge) is not None]
        patience = training.waiting(len(chosen))
        return Stop(patience, judges=judges, targets=training.targets)

    solvers = [m.training.solver for m in members]
    weighted = any(m.learns is not None for m in members)
    one = torch.ones(len(data["x"]), dtype=torch.float64)
    rows = [one if m.learns is None else m.learns.double().cpu() for m in members]
    histories = fit_population(
        [m.plan.energy for m in members],
        data,
        members[0].plan.rule,
        Stochastic(
            name,
            batch_size=solvers[0].batch_size,
            max_epochs=solvers[0].max_epochs,
            tol=None,
            precision=solvers[0].precision,
        ),
        lr=[s.lr for s in solvers],
        strength=[float(getattr(m.plan.penalty, "strength", 0.0)) for m in members],
        clip=None if solvers[0].clip_norm is None else [s.clip_norm for s in solvers],
        schedule=[s.schedule for s in solvers],
        settings=settings,
        sample_weight=torch.stack(rows) if weighted else None,
        random_state=[m.key for m in members],
        stop=stop,
        merge=_noisy(members[0].plan.energy),
    )
    for member, history in zip(members, histories, strict=True):
        _finish(member, history, data)


def _finish(member: Member, history: History, data: Mapping[str, Tensor]) -> None:
    model, plan, training = member.model, member.plan, member.training
    if "the loss became" in history.stop:
        raise FloatingPointError(history.stop)
    extra = 0.0 if training.offset is None else training.offset(data, member.learns)
    history.extra["loss"] = [value + extra for value in history.objective]
    history.extra["seen"] = [member.total * history.n_iter]
    history.solver = "NetworkTraining"
    if history.converged:
        what = "objective" if member.judge is None else "score of the held-out rows"
        history.stop = (
            f"the {what} did not improve by tol={training.tol} in {training.patience} epochs"
        )
    plan.energy.eval()
    if hasattr(model, "_describe"):
        model._describe(history, plan)
    if hasattr(model, "_measure"):
        model._measure(plan.energy, data, member.given)
    model.energy_, model.history_ = plan.energy, history
    model.n_iter_ = max(1, history.n_iter)
    for name, value in model._learned(plan.energy).items():
        setattr(model, name, value)
    epochs = training.solver.max_epochs
    warns = training.warns and epochs > 1 and training.patience < math.inf
    if warns and history.stop == "max_epochs":
        warnings.warn(
            f"training stopped at max_iter={epochs} epochs before the objective rested; raise "
            "max_iter, or set n_iter_no_change=inf to ask for exactly that many",
            NotConverged,
            stacklevel=5,
        )


def fit_members(
    base: Any,
    X: Any,
    y: Any,
    weights: Sequence[NDArray[Any] | None],
    params: Sequence[Mapping[str, Any]],
) -> list[Any]:
    """Fitted clones, one for each weight and setting; ``NotApplicable`` where each is fitted alone."""
    rows = Rows(X, y)
    members: list[Member] = []
    try:
        for weight, changes in zip(weights, params, strict=True):
            member = plan_member(base, changes, rows, weight)
            if member is None or (not members and not keyed(member, rows.of(member.model))):
                raise NotApplicable(
                    "L-BFGS, schedules by plateau, warm starts, callbacks, half precision and modules "
                    "with randomness of their own are trained alone"
                )
            members.append(member)
        groups: dict[Any, list[Member]] = {}
        for member in members:
            groups.setdefault(member.kind, []).append(member)
        for chosen in groups.values():
            learn_members(chosen, rows.of(chosen[0].model))
    except Unsupported as error:
        raise NotApplicable(f"a single fit does it or refuses: {error}") from error
    return [member.model for member in members]
