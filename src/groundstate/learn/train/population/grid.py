"""Seeds, folds and hyperparameters multiplied out and learned at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.recorded import no_collection
from groundstate.compute.rows import check_same_length, hash_together
from groundstate.compute.weight_line.line import WeightLine
from groundstate.energy.base import Energy
from groundstate.errors import DataError, ShapeError
from groundstate.learn.base import History, Rule
from groundstate.learn.rules.softmin import NLL
from groundstate.learn.train.population.learn import fit_population
from groundstate.learn.train.population.result import LearnedMember, PopulationResult
from groundstate.learn.train.stochastic import Stochastic

OPTIMISER = ("beta1", "beta2", "eps", "momentum", "alpha", "weight_decay")
TRAINING = ("lr", "strength", "l1", "clip", "schedule", "seed", "fold", *OPTIMISER)
Grid = int | Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]]


def learn_population(
    make_energy: Callable[..., Energy],
    members: Grid,
    data: Mapping[str, Tensor],
    rule: Rule | None = None,
    *,
    optimizer: str | Callable[..., Any] = "adam",
    lr: float = 1e-3,
    epochs: int = 100,
    batch_size: int | None = 256,
    schedule: Any = None,
    tol: float | None = None,
    folds: int | None = None,
    early_stopping: bool = False,
    patience: int = 10,
    sample_weight: Tensor | None = None,
    validation_weight: Tensor | None = None,
    seed: Any = 0,
    device: str | torch.device | None = None,
    capture: bool | str = "auto",
    backend: str = "auto",
    max_members: int | None = None,
    checkpoint: Any = None,
    checkpoint_every: int | None = None,
) -> PopulationResult:
    r"""Make and learn many energies as one program: :math:`\theta_m = \arg\min J_m`.

    Parameters
    ----------
    make_energy : ``make_energy(generator, **own)``
        Makes a member; ``generator`` is its stream of initial weights, ``own`` its entries of the
        grid that are not settings of the training.
    members : int, mapping or list of mappings
        A number of seeds; or values by name, of which all combinations are made; or the members'
        settings one by one. ``lr``, ``strength`` (L2), ``l1``, ``clip``, ``schedule``, ``seed``,
        ``beta1``, ``beta2``, ``eps``, ``momentum``, ``alpha`` and ``weight_decay`` set the training;
        other names go to ``make_energy``.
    data : tensors by name, ``(N, *event)``
    rule : learning rule, None is maximum likelihood
    optimizer, lr, epochs, batch_size, schedule, tol : as in ``Stochastic``
    folds : every member once for each of so many folds; its score is the loss on the rows left out
    early_stopping : stop a member when its held-out loss is not better for ``patience`` epochs
    sample_weight, validation_weight : ``(N,)`` or ``(P, N)``; not together with ``folds``
    seed : from which members without a ``seed`` of their own start
    device, capture, backend, max_members, checkpoint, checkpoint_every : as in ``fit_population``

    Returns
    -------
    PopulationResult

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import NetClassEnergy
    >>> x = torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
    >>> data = {"x": x, "y": (x[:, 0] * x[:, 1] > 0).long()}
    >>> make = lambda generator, width: NetClassEnergy(2, 2, (width,), generator=generator)
    >>> result = learn_population(
    ...     make, {"width": [2, 16], "seed": [0, 1]}, data, folds=3, lr=0.05, epochs=20)
    >>> len(result), result.mean_by("width")[0]["width"]
    (12, 16)
    """
    rows = check_same_length(data) if data else 0
    grid = _expand(members, seed)
    held = validation_weight
    if folds is not None:
        if validation_weight is not None or (sample_weight is not None and sample_weight.ndim > 1):
            raise ShapeError(
                "folds makes the weights of the members; pass folds or weights, not both"
            )
        parts = _folds(data, sample_weight, folds, seed)
        grid = [{**own, "fold": f} for own in grid for f in range(folds)]
        train = torch.stack([parts[own["fold"]] for own in grid])
        full = torch.ones(rows, dtype=train.dtype) if sample_weight is None else sample_weight.cpu()
        held, sample_weight = full - train, train
    if held is not None and held.ndim == 1:
        held = held.expand(len(grid), -1)
    if early_stopping and held is None:
        raise DataError("early_stopping needs held-out rows: pass folds= or validation_weight=")
    keys = [Key.of(own["seed"]) for own in grid]
    with no_collection():
        energies = [
            make_energy(
                key.fold("init").torch(), **{k: v for k, v in own.items() if k not in TRAINING}
            )
            for key, own in zip(keys, grid, strict=True)
        ]
    rule = NLL() if rule is None else rule
    solver = Stochastic(optimizer, lr, batch_size, max_epochs=epochs, tol=tol, schedule=schedule)

    def given(name: str, default: Any) -> Any:
        if not any(name in own for own in grid):
            return default
        return [own.get(name, default) for own in grid]

    histories = fit_population(
        energies, data, rule, solver,
        lr=given("lr", lr), strength=given("strength", 0.0), l1=given("l1", 0.0),
        clip=_clips(grid), schedule=given("schedule", schedule),
        settings={n: [own[n] for own in grid] for n in OPTIMISER if any(n in own for own in grid)},
        sample_weight=sample_weight, validation_weight=held,
        patience=patience if early_stopping else None, random_state=keys, device=device,
        capture=capture, backend=backend,
        max_members=max_members, checkpoint=checkpoint, checkpoint_every=checkpoint_every,
    )  # fmt: skip
    scores = map(_score, histories)
    return PopulationResult(tuple(map(LearnedMember, energies, histories, grid, scores)))


def _expand(members: Grid, seed: Any) -> list[dict[str, Any]]:
    if isinstance(members, int):
        if members < 1:
            raise ShapeError(f"a population needs at least one member, got {members}")
        key = Key.of(seed)
        return [{"seed": key.fold("member", m)} for m in range(members)]
    if isinstance(members, Mapping):
        rows = [dict(zip(members, row, strict=True)) for row in product(*members.values())]
    else:
        rows = [dict(row) for row in members]
    if not rows:
        raise ShapeError("the grid has no member; give every name at least one value")
    names = set(rows[0])
    for i, row in enumerate(rows):
        if missing := (names ^ set(row)) & set(OPTIMISER):
            raise ShapeError(f"members 0 and {i} must both set {', '.join(sorted(missing))}")
    one = Key.of(seed)
    return [{**row, "seed": row.get("seed", one)} for row in rows]


def _clips(grid: list[dict[str, Any]]) -> list[float] | None:
    if not any(own.get("clip") is not None for own in grid):
        return None
    return [float("inf") if own.get("clip") is None else own["clip"] for own in grid]


def _folds(data: Mapping[str, Tensor], weight: Tensor | None, k: int, seed: Any) -> Tensor:
    line = WeightLine(
        hash_together(data), None if weight is None else weight.double().cpu().numpy()
    )
    y = data.get("y")
    labels = (
        y.cpu().numpy() if y is not None and not y.is_floating_point() and y.ndim == 1 else None
    )
    return torch.from_numpy(line.folds(Key.of(seed).fold("folds"), k, stratify=labels))


def _score(history: History) -> float:
    if "the loss became" in history.stop:
        return float("inf")
    return history.extra.get("held_out", history.objective)[-1]
