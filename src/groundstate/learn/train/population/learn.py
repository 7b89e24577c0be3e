r"""Many energies learned as one tensor program.

Member p lowers its own objective :math:`J_p(\theta_p)` with its own step size, penalty, seed and row
weights. The members meet in one step because :math:`\nabla_\Theta \sum_p J_p(\theta_p)` has member
p's gradient in row p. The result is what P separate fits give.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, is_tensor, nn

from groundstate.compute.random import Key
from groundstate.compute.recorded import no_collection
from groundstate.compute.rows import check_same_length, count, take, to_device
from groundstate.energy.base import Energy
from groundstate.errors import DataError, ShapeError, Unsupported
from groundstate.learn.base import History, Rule
from groundstate.learn.rules.players import moves_of
from groundstate.learn.stops import Patience
from groundstate.learn.train.guard import check_labels
from groundstate.learn.train.population.run import Each, PopulationRun
from groundstate.learn.train.population.stop import Stop
from groundstate.learn.train.population.widths import joined, narrowed, widened
from groundstate.learn.train.stochastic import Stochastic

PerMember: TypeAlias = float | Sequence[float] | None
_SHARED = frozenset(
    {"optimizer", "lr", "batch_size", "max_epochs", "tol", "patience", "schedule", "precision"}
)
_PLAIN = (int, float, str, bool, tuple, type(None))
_PROBE = 2  # rows on which the size of activations is seen
_COPIES = 8  # of θ: gradient, moments, the best and the last good ones, work
BACKENDS = ("auto", "reference")


def fit_population(
    energies: Sequence[Energy],
    data: Mapping[str, Tensor],
    rule: Rule,
    solver: Stochastic | None = None,
    *,
    lr: PerMember = None,
    strength: PerMember = 0.0,
    l1: PerMember = 0.0,
    clip: PerMember = None,
    schedule: Any = None,
    settings: Mapping[str, PerMember] | None = None,
    sample_weight: Tensor | None = None,
    validation_weight: Tensor | None = None,
    patience: int | None = 10,
    random_state: Sequence[Any] | Any = None,
    device: str | torch.device | None = None,
    capture: bool | str = "auto",
    backend: str = "auto",
    max_members: int | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int | None = None,
    stop: Callable[[list[int]], Stop] | None = None,
    merge: bool = False,
) -> list[History]:
    r"""Learn P energies at once, in place; the same as P calls of ``fit`` with ``Stochastic``.

    Members of different shape are trained group by group; multilayer networks that differ in width
    are padded with units that stay zero where that is quicker. Plain multilayer networks under a softmax,
    squared or logistic loss take a program with the passes written out; everything else is
    vectorised by ``torch.func``. A member whose loss is no longer finite stops with the reason in
    its history and the parameters of its last good epoch; the others do not notice.

    Parameters
    ----------
    energies : the members
    data : tensors by name, ``(N, *event)``, seen by all
    rule : an exact learning rule; each member has its own copy
    solver : ``Stochastic`` settings shared by all
    lr : one number or ``(P,)`` step sizes; None takes the solver's
    strength : one number or ``(P,)``: L2 penalty, as ``L2(strength)``
    l1 : one number or ``(P,)``: L1 penalty by its proximal map, as ``L1(l1)``
    clip : one number or ``(P,)``: largest norm of a member's gradient
    schedule : one of ``groundstate.learn.train.schedules`` for all, or P of them in a list; None takes the
        solver's
    settings : further settings of the optimiser by name (``beta1``, ``beta2``, ``eps``,
        ``momentum``, ``alpha``, ``weight_decay``), one number or ``(P,)``
    sample_weight : ``(N,)`` or ``(P, N)``; a fold is a row of weights with zeros
    validation_weight : ``(P, N)``; the loss of these held-out rows is ``extra["held_out"]`` of a history.
        A member stops after ``patience`` epochs without a better one and gets its best parameters
        back, unless ``patience`` is None
    random_state : one seed for all, or P of them; it orders the rows and keys dropout
    device : where to train; None is the GPU where the rows are, else where the members are. The
        members are there afterwards
    capture : record the step as a CUDA graph; "auto" does so on a GPU wherever it can be recorded
    backend : "auto", or "reference" for the vectorised program alone
    max_members : members trained at a time; None takes what fits in half of the free memory
    checkpoint : folder; a run that finds its checkpoints there goes on to the same bits
    checkpoint_every : steps between checkpoints; they are also written after every epoch
    stop : makes what decides when members are done, of their numbers; None goes by ``tol`` and
        ``patience`` of the solver
    merge : a step of all rows sees equal rows as one, in the order of their content, as
        ``NetworkTraining`` does

    Returns
    -------
    one ``History`` per member, with the epoch objectives

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import LinearEnergy
    >>> from groundstate.learn import SoftMin, Stochastic
    >>> x = torch.tensor([[-1.0], [1.0]])
    >>> members = [LinearEnergy(1, 2) for _ in range(3)]
    >>> histories = fit_population(
    ...     members, {"x": x, "y": torch.tensor([0, 1])}, SoftMin(),
    ...     Stochastic(max_epochs=5, tol=None), lr=[0.01, 0.1, 1.0], random_state=0)
    >>> [h.objective[-1] > 0.5 for h in histories]
    [True, False, False]
    """
    solver = solver or Stochastic()
    _check(energies, data, rule, solver, backend)
    size = len(energies)
    place = _place(device, energies[0], data)
    data = {name: _placed(v, place) for name, v in data.items()}
    rows = check_same_length(data)
    weights = _weights(sample_weight, size, rows)
    if validation_weight is not None and validation_weight.shape != (size, rows):
        raise ShapeError(
            f"validation_weight must be ({size}, {rows}), got {tuple(validation_weight.shape)}"
        )
    each = Each(
        keys=_keys(random_state, size),
        lr=_many(solver.lr if lr is None else lr, size, "lr"),
        strength=_many(strength or 0.0, size, "strength"),
        l1=_many(l1 or 0.0, size, "l1"),
        clip=None if clip is None else _many(clip, size, "clip"),
        schedule=_schedules(solver.schedule if schedule is None else schedule, size),
        settings={name: _many(v, size, name) for name, v in (settings or {}).items()},
    )
    histories: list[History] = [History()] * size
    memory = partial(_bytes, rule=rule, data=data, rows=min(rows, solver.batch_size or rows))
    for g, members in enumerate(_groups(energies, solver, max_members, place, rows, memory)):
        own = [energies[i] for i in members]
        wide = widened(own)
        if stop is not None:
            watched = stop(members)
        elif validation_weight is not None and patience is not None:
            watched = Stop(
                Patience(len(members), patience=patience), held=validation_weight[members]
            )
        else:
            watched = Stop(
                Patience(len(members), tol=solver.tol, patience=solver.patience, relative=True)
            )
        with no_collection():
            run = PopulationRun(
                wide, data, rule, solver, each.part(members), [weights[i] for i in members], watched,
                place, place.type == "cuda" if capture == "auto" else bool(capture), backend,
                None if checkpoint is None else Path(checkpoint) / f"group-{g}", checkpoint_every,
                merge,
            )  # fmt: skip
        run.run()
        narrowed(wide, own)
        if validation_weight is not None:
            held = run.held_out(validation_weight[members].to(run.population.flat))
            for history, value in zip(run.histories, held.tolist(), strict=True):
                history.extra["held_out"] = [value]
        for i, history in zip(members, run.histories, strict=True):
            histories[i] = history
    return histories


def _check(
    energies: Sequence[Energy],
    data: Mapping[str, Tensor],
    rule: Rule,
    solver: Stochastic,
    backend: str,
) -> None:
    if not energies:
        raise ShapeError("a population needs at least one energy")
    if not data or count(next(iter(data.values()))) == 0:
        raise DataError("there are no rows to learn from")
    if backend not in BACKENDS:
        raise Unsupported(f"backend {backend!r} is not known; use 'auto' or 'reference'")
    rule.require(energies[0], data)
    check_labels(energies[0], rule.events(data))
    if not rule.is_exact(energies[0], data):
        raise Unsupported(
            f"{type(rule).__name__} is not exact on {type(energies[0]).__name__}: a population "
            "shares no randomness between members; fit them one after the other"
        )
    others = hasattr(rule, "follows") or bool(moves_of(rule, energies[0]))
    if others or hasattr(rule, "end_epoch"):
        raise Unsupported(
            f"{type(rule).__name__} has players or keeps count of its steps, which members of a "
            "population do not; fit them one after the other"
        )
    if solver.precision not in ("auto", "32", "bf16"):
        raise Unsupported(
            f"precision={solver.precision!r} is not there for populations; use auto, 32 or bf16"
        )
    plain = Stochastic()
    unknown = [
        f.name
        for f in fields(solver)
        if f.name not in _SHARED and f.name not in ("log_every", "prox", "deterministic")
        if getattr(solver, f.name) != getattr(plain, f.name)
    ]
    if unknown:
        raise Unsupported(
            f"{' and '.join(unknown)} is not there for populations; leave it as it is"
            + (" and pass clip= here" if "clip_norm" in unknown else "")
        )


def _place(
    device: str | torch.device | None, energy: Energy, data: Mapping[str, Tensor]
) -> torch.device:
    """The asked device, else the accelerator where the rows are, else where the members are."""
    if device is not None:
        return torch.device(device)
    rows = next(iter(data.values())).device
    return energy.placement()[0] if rows.type == "cpu" else rows


def _placed(rows: Any, place: torch.device) -> Any:
    return rows if rows.device == place else to_device(rows, place)


def _many(value: Any, size: int, name: str) -> list[float]:
    values = [float(value)] * size if isinstance(value, float | int) else [float(v) for v in value]
    if len(values) != size:
        raise ShapeError(f"{name} has {len(values)} entries for {size} members")
    return values


def _keys(random_state: Any, size: int) -> list[Key]:
    if not isinstance(random_state, Sequence):
        return [Key.of(random_state)] * size  # one draw even when the seed is None
    if len(random_state) != size:
        raise ShapeError(f"random_state has {len(random_state)} entries for {size} members")
    return [Key.of(seed) for seed in random_state]


def _schedules(schedule: Any, size: int) -> list[Any]:
    if not isinstance(schedule, list | tuple):
        schedule = [schedule] * size
    if len(schedule) != size:
        raise ShapeError(f"schedule has {len(schedule)} entries for {size} members")
    if any(s == "plateau" for s in schedule):
        raise Unsupported("schedule 'plateau' is not there for populations; name another")
    return list(schedule)


def _weights(weight: Tensor | None, size: int, rows: int) -> list[Tensor | None]:
    if weight is None:
        return [None] * size
    if weight.shape == (rows,):
        return [weight] * size
    if weight.shape == (size, rows):
        return list(weight.unbind())
    raise ShapeError(
        f"sample_weight must be ({rows},) or ({size}, {rows}), got {tuple(weight.shape)}"
    )


def shape_of(energy: Energy) -> tuple[Any, ...]:
    """What members of one program must have in common: modules, their settings, tensor shapes."""
    found: list[Any] = []
    for name, module in energy.named_modules():
        if isinstance(module, nn.Dropout):  # rates are a member's own
            found.append((name, "dropout"))
            continue
        own = tuple(
            (k, type(v), repr(v) if isinstance(v, tuple) else v)
            for k, v in vars(module).items()
            if k != "training" and isinstance(v, _PLAIN)
        )
        shapes = tuple(
            (n, p.shape, p.dtype) for n, p in module._parameters.items() if p is not None
        )
        found.append((name, type(module), own, shapes))
    return tuple(found)


def _groups(
    energies: Sequence[Energy],
    solver: Stochastic,
    most: int | None,
    place: torch.device,
    rows: int,
    memory: Callable[[Energy], float],
) -> list[list[int]]:
    """Members of one shape together, no more at a time than memory allows."""
    groups: dict[Any, list[int]] = {}
    for i, energy in enumerate(energies):
        groups.setdefault(shape_of(energy), []).append(i)
    out = []
    step = min(rows, solver.batch_size or rows)
    sizes = {own[0]: memory(energies[own[0]]) for own in groups.values()}
    for members in joined(list(groups.values()), energies, step, _PLAIN):
        widest = max(sizes.get(i, 0.0) for i in members)
        limit = most or max(1, int(0.5 * _free(place) / widest))
        out += [members[at : at + limit] for at in range(0, len(members), limit)]
    return out


def _bytes(energy: Energy, rule: Rule, data: Mapping[str, Tensor], rows: int) -> float:
    """Memory of one member in training, roughly: copies of θ and what a step keeps of each layer."""
    probe: dict[str, Any] = {
        name: take(v, torch.arange(min(_PROBE, count(v)))).to(energy.placement()[0])
        for name, v in data.items()
    }
    kept: list[int] = []

    def note(module: nn.Module, given: Any, out: Any) -> None:
        kept.extend(t.numel() for t in (out if isinstance(out, tuple) else (out,)) if is_tensor(t))

    leaves = [m for m in energy.modules() if not any(True for _ in m.children())]
    hooks = [leaf.register_forward_hook(note) for leaf in leaves]
    was_training = energy.training
    try:
        copy.deepcopy(rule).mean(energy.eval(), probe)
    finally:
        energy.train(was_training)
        for hook in hooks:
            hook.remove()
    parameters = sum(p.numel() for p in energy.parameters())
    numbers = _COPIES * parameters + 3 * sum(kept) * rows / _PROBE
    return float(energy.placement()[1].itemsize * numbers + 1)


def _free(place: torch.device) -> float:
    if place.type == "cuda":
        return float(torch.cuda.mem_get_info(place)[0])
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (ValueError, OSError, AttributeError):  # a system that does not say
        return 4e9
