r"""Mix and match: every energy with every rule, then with every inference that its abilities allow."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy import ChainRuleEnergy, Energy
from groundstate.errors import Unsupported
from groundstate.experiments.base import Claim, Figure, Result, experiment
from groundstate.infer import (
    HMC,
    Annealed,
    Gibbs,
    Gradient,
    Importance,
    Langevin,
    Method,
    Metropolis,
    Quadrature,
    infer,
)
from groundstate.infer import Variational as VariationalInference
from groundstate.infer.dispatch import methods_for
from groundstate.learn import Rule, SoftMin, Stochastic, Variational, fit
from groundstate.registry import energies, rules

ROWS = 6
OBSERVED = ("x", "y")  # z is never in the data
MODES: dict[str, Any] = {"minimise": "min", "marginalise": "marginal", "sample": "sample"}

# one row per energy, one sign per column: ● exact, ○ approximate and flagged, – refused
TABLE = {
    "TableEnergy": "●●●●○○–––",
    "LinearEnergy": "●●●●○○–––",
    "NetClassEnergy": "●●●●○○–––",
    "SquaredEnergy": "●●–●○○–○●",
    "CentroidEnergy": "●○–●○○○○●",
    "LinearGaussianEnergy": "●○–●○○○○●",
    "BilinearEnergy": "●●●●○○○––",
    "ChainEnergy": "●●●●○○–––",
    "NetEnergy": "●○–○○○–○●",
    "LatentClassEnergy": "●●●●○○○––",
    "ChainRuleEnergy": "●○○●○○–––",
    "DecoderEnergy": "○○–○○○○○○",
}
# the registry's example where it is not named: this one is too long to list
MAKE: dict[str, Callable[[], Energy]] = {"ChainRuleEnergy": lambda: ChainRuleEnergy(5, 9, 4)}
COLUMNS: dict[str, tuple[str, ...]] = {
    "Naive": ("Naive",),
    "Perceptron": ("Perceptron",),
    "Margin": ("Margin",),
    "SoftMin": ("SoftMin", "NLL"),
    "sampled": ("InBatch", "Sampled", "NCE"),
    "CD": ("ContrastiveDivergence", "PersistentCD"),
    "variational": ("Variational",),
    "Adversarial": ("Adversarial",),
    "score": ("ScoreMatching", "DenoisingScoreMatching"),
}
# short runs of the methods whose defaults are made for real work
SHORT: dict[str, Method] = {
    "Annealed": Annealed(n=8, n_temps=3),
    "Gibbs": Gibbs(n_steps=2),
    "Gradient": Gradient(max_iter=10),
    "HMC": HMC(n_steps=2, n_leapfrog=2),
    "Importance": Importance(n=16),
    "Langevin": Langevin(n_steps=2),
    "Metropolis": Metropolis(n_steps=4),
    "Quadrature": Quadrature(points=8, restarts=1),
    "Variational": VariationalInference(n=4, max_iter=3),
}


def rule_for(name: str, energy: Energy) -> Rule:
    """A rule by name; ``Variational`` is ``SoftMin`` with a bound in place of the sum over z."""
    sums = (Quadrature(points=16), Importance(n=64))
    if name == "Variational":
        return SoftMin(latent=Variational(), approximate=sums)
    made: Rule = rules[name].make(energy)  # type: ignore[misc]
    return made


@dataclass
class Cell:
    """What became of one energy under one column."""

    mark: str = "–"
    seconds: float = 0.0
    answers: int = 0  # questions that were answered
    endless: int = 0  # questions refused while running: the energy has no finite minimum or sum
    broken: list[str] = field(default_factory=list)


@experiment("ENE-X-cross", theme="energy", title="Mix and match", slow=True)
def cross(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The three choices meet only in :math:`e(x, y, z; \theta)`: every energy trains under every rule
    that its abilities allow and then answers every question that ``explain`` says it can.

    Twelve energies and nine columns of rules. Rules that do not fit refuse with a reason before any
    computation. Every trained energy is asked to minimise, marginalise and sample over each variable
    and over all of them, by every method that runs. There is no special case anywhere.
    """
    key = Key.of(seed)
    start, cpu = time.perf_counter(), time.process_time()
    cells: dict[tuple[str, str], Cell] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short runs warn, rightly, that they are short
        for name in TABLE:
            for column, group in COLUMNS.items():
                cells[name, column] = _cell(key.fold(name, column), name, group)
    spent, used = time.perf_counter() - start, time.process_time() - cpu

    ours = {name: "".join(cells[name, column].mark for column in COLUMNS) for name in TABLE}
    wrong = [
        f"{name} {column}"
        for name, marks in TABLE.items()
        for column, mark, own in zip(COLUMNS, marks, ours[name], strict=True)
        if mark != own
    ]
    broken = [text for cell in cells.values() for text in cell.broken]
    answers = sum(cell.answers for cell in cells.values())
    trained = sum(cell.mark != "–" for cell in cells.values())
    claims = [
        Claim.equal("cells whose sign differs from the table", wrong, []),
        Claim.equal("trained cells", trained, sum(m != "–" for row in TABLE.values() for m in row)),
        Claim.equal("questions that failed though explain says they run", broken, []),
        Claim.at_least("questions answered", answers, 10 * trained),
        Claim.below("seconds of computing", used, 60.0).on_the_clock(),
    ]
    numbers = {
        "table": ours,
        "answers": answers,
        "endless": sum(cell.endless for cell in cells.values()),
    }

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        shades = {"●": 0.9, "○": 0.45, "–": 0.0}
        image = [[shades[cells[n, c].mark] for c in COLUMNS] for n in TABLE]
        ax.imshow(image, cmap="Greens", vmin=0, vmax=1.2, aspect="auto")
        for i, name in enumerate(TABLE):
            for j, column in enumerate(COLUMNS):
                cell = cells[name, column]
                text = f"{cell.mark} {cell.seconds:.2f} s" if cell.mark != "–" else "–"
                ax.text(j, i, text, ha="center", va="center", fontsize=7)
        ax.set_xticks(range(len(COLUMNS)), COLUMNS)
        ax.set_yticks(range(len(TABLE)), TABLE)
        ax.set_title("● exact, ○ approximate, – refused; time to train and ask everything")

    seconds = {"wall": spent, "cpu": used}
    return Result(claims, numbers, draw, seconds, size=(9.0, 5.0))


def _cell(key: Key, name: str, group: tuple[str, ...]) -> Cell:
    """Train one energy by every rule of a column; ask the first trained one everything."""
    cell, start = Cell(), time.perf_counter()
    for rule_name in group:
        make = MAKE.get(name, energies[name].make)
        assert make is not None
        energy = make().double()
        data = _rows(energy, key.fold("data"), OBSERVED)
        rule = rule_for(rule_name, energy).double()
        if rule.reason_against(energy, data) is not None:
            cell.broken += _refuses(rule, energy, data)
            continue
        exact = rule.is_exact(energy, data)
        solver = Stochastic(lr=0.01, batch_size=None, max_epochs=2, tol=None)
        history = fit(energy, data, rule, solver, random_state=key.fold(rule_name))
        if not all(math.isfinite(v) for v in history.objective):
            cell.broken.append(f"{name} {rule_name}: loss {history.objective}")
        if cell.mark == "–":
            cell.mark = "○"
            _ask(cell, energy, key, f"{name} {rule_name}")
        cell.mark = "●" if exact else cell.mark
    cell.seconds = time.perf_counter() - start
    return cell


def _rows(energy: Energy, key: Key, names: tuple[str, ...], n: int = ROWS) -> dict[str, Tensor]:
    generator, dtype = key.torch(), torch.float64
    return {
        name: space.draw(n, generator=generator, dtype=dtype)
        for name, space in energy.spaces.items()
        if name in names
    }


def _refuses(rule: Rule, energy: Energy, data: dict[str, Tensor]) -> list[str]:
    """What is wrong with a refusal: it must raise ``Unsupported`` and compute nothing."""
    called: list[int] = []
    hook = energy.register_forward_pre_hook(lambda *_: called.append(1))
    where = f"{type(energy).__name__} {type(rule).__name__}"
    try:
        rule(energy, data)
        return [f"{where}: did not refuse"]
    except Unsupported:
        return [f"{where}: computed before it refused"] if called else []
    finally:
        hook.remove()


def _questions(energy: Energy) -> Iterator[tuple[str, ...]]:
    names = tuple(energy.spaces)
    yield from ((name,) for name in names)
    if len(names) > 1:
        yield names


def _ask(cell: Cell, energy: Energy, key: Key, where: str) -> None:
    """Every operation, every question, every method that says it runs."""
    values = _rows(energy, key.fold("ask"), tuple(energy.spaces), 2)
    for operation, mode in MODES.items():
        for free in _questions(energy):
            given = {name: v for name, v in values.items() if name not in free}
            for method in methods_for(operation):
                if method.reason_against(energy, operation, free, given) is not None:
                    continue
                short = SHORT.get(type(method).__name__, method)
                run: Callable[[], Any] = lambda m=short, f=free, g=given, o=mode: infer(  # type: ignore[misc]  # noqa: E731
                    energy, g, f, o, method=m, generator=key.fold("chain").torch()
                )
                _try(cell, run, f"{where}: {operation} {', '.join(free)} by {type(short).__name__}")


def _try(cell: Cell, run: Callable[[], Any], what: str) -> None:
    try:
        answer = run()
    except FloatingPointError as reason:  # an energy without a lowest value has no distribution
        if "no finite minimum" in str(reason):
            cell.endless += 1
        else:
            cell.broken.append(f"{what}: {reason}")
        return
    except Exception as reason:
        cell.broken.append(f"{what}: {type(reason).__name__} {reason}")
        return
    value = answer.value if hasattr(answer, "value") else answer.energy
    if bool(torch.isnan(value).any()):
        cell.broken.append(f"{what}: NaN")
    cell.answers += 1
