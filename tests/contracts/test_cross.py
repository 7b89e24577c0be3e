"""The mix-and-match table: every energy with every rule, and no special case in this file.

● exact, ○ approximate and flagged, – ``Unsupported`` with a reason before any computation.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from groundstate.energy import (
    BilinearEnergy,
    CentroidEnergy,
    ChainEnergy,
    ChainRuleEnergy,
    DecoderEnergy,
    Energy,
    LatentClassEnergy,
    LinearEnergy,
    LinearGaussianEnergy,
    NetClassEnergy,
    NetEnergy,
    SquaredEnergy,
    TableEnergy,
)
from groundstate.errors import Unsupported
from groundstate.learn import Rule, SoftMin, Variational
from groundstate.learn.rules.inner import suggested
from groundstate.registry import rules

ROWS = 6
OBSERVED = ("x", "y")  # z is never in the data


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# name -> energy, cells in the order of COLUMNS
ENERGIES: dict[str, tuple[Callable[[], Energy], str]] = {
    "Table": (lambda: TableEnergy(torch.tensor([0.3, -0.2, 0.5, 0.1])), "●●●●○○–––"),
    "Linear": (lambda: LinearEnergy(3, 4), "●●●●○○–––"),
    "NetClass": (lambda: NetClassEnergy(3, 4, generator=seeded()), "●●●●○○–––"),
    "Squared": (lambda: SquaredEnergy(3, 2), "●●–●○○–○●"),
    "Centroid": (lambda: CentroidEnergy(3, 2, generator=seeded()), "●○–●○○○○●"),
    "LinearGaussian": (lambda: LinearGaussianEnergy(3, 2, generator=seeded()), "●○–●○○○○●"),
    "Bilinear": (lambda: BilinearEnergy(4, 3, generator=seeded()), "●●●●○○○––"),
    "Chain": (lambda: ChainEnergy(2, 3, 4), "●●●●○○–––"),
    "Net": (lambda: NetEnergy(2, generator=seeded()), "●○–○○○–○●"),
    "LatentClass": (lambda: LatentClassEnergy(3, 4, 2, generator=seeded()), "●●●●○○○––"),
    "ChainRule": (lambda: ChainRuleEnergy(5, 9, 4, generator=seeded()), "●○○●○○–––"),
    "Decoder": (lambda: DecoderEnergy(3, 1, generator=seeded()), "○○–○○○○○○"),
}


def registered(name: str) -> Callable[[Energy], Rule]:
    return lambda energy: rules[name].make(energy)  # type: ignore[misc]


# column -> the rules it stands for
COLUMNS: dict[str, dict[str, Callable[[Energy], Rule]]] = {
    "Naive": {"Naive": registered("Naive")},
    "Perceptron": {"Perceptron": registered("Perceptron")},
    "Margin": {"Margin": registered("Margin")},
    "SoftMin": {"SoftMin": registered("SoftMin"), "NLL": registered("NLL")},
    "Sampled": {n: registered(n) for n in ("InBatch", "Sampled", "NCE")},
    "CD": {n: registered(n) for n in ("ContrastiveDivergence", "PersistentCD")},
    "Variational": {
        "Variational": lambda energy: SoftMin(latent=Variational(), approximate=suggested(energy))
    },
    "Adversarial": {"Adversarial": registered("Adversarial")},
    "ScoreMatching": {n: registered(n) for n in ("ScoreMatching", "DenoisingScoreMatching")},
}
# where a cell of a column with several rules holds for one of them only
FINER = {("Decoder", "ScoreMatching"): "–"}

CELLS = [
    pytest.param(energy, make, FINER.get((energy, name), mark), id=f"{energy}-{name}")
    for energy, (_, marks) in ENERGIES.items()
    for (column, group), mark in zip(COLUMNS.items(), marks, strict=True)
    for name, make in group.items()
]


def batch_for(energy: Energy) -> dict[str, Tensor]:
    generator = seeded(1)
    return {
        name: space.draw(ROWS, generator=generator, dtype=torch.float64)
        for name, space in energy.spaces.items()
        if name in OBSERVED
    }


@pytest.mark.parametrize(("energy_name", "make", "mark"), CELLS)
def test_cell(energy_name: str, make: Callable[[Energy], Rule], mark: str) -> None:
    energy = ENERGIES[energy_name][0]().double()
    batch = batch_for(energy)
    rule = make(energy).double()
    before = copy.deepcopy(energy.state_dict())
    if mark == "–":
        called = []
        energy.register_forward_pre_hook(lambda *_: called.append(1))
        reason = rule.reason_against(energy, batch)
        assert reason, "a reason in words"
        with pytest.raises(Unsupported, match=f"cannot train {type(energy).__name__}: "):
            rule(energy, batch, generator=seeded())
        assert not called, "nothing is computed before the refusal"
        return
    assert rule.reason_against(energy, batch) is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Naive says where it is unsafe
        terms = rule(energy, batch, generator=seeded())
        assert rule.is_exact(energy, batch) is (mark == "●")
    assert terms.exact is (mark == "●")
    assert terms.loss.shape == (ROWS,)
    assert torch.isfinite(terms.loss).all()
    assert torch.allclose(terms.loss, terms.positive - terms.contrast, atol=1e-12)
    terms.loss.mean().backward()
    learned = [p for p in energy.parameters() if p.requires_grad]
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in learned)
    with torch.no_grad():
        for p in learned:
            if p.grad is not None:
                p -= 0.01 * p.grad
    moved = any(not torch.equal(v, before[n]) for n, v in energy.state_dict().items())
    assert moved or not any(bool(p.grad.any()) for p in learned if p.grad is not None)
    inner = getattr(rule, "inner", None)
    if inner is not None:
        loss = inner(energy, batch, generator=seeded())
        grads = torch.autograd.grad(loss, [p for p in rule.parameters() if p.requires_grad])
        assert all(torch.isfinite(g).all() for g in grads)


def test_table_is_complete() -> None:
    """Eleven rows (Linear and NetClass share one) and nine columns, every rule in some column."""
    assert len(ENERGIES) == 12 and len(COLUMNS) == 9
    named = {name for group in COLUMNS.values() for name in group} - {"Variational"}
    beyond = {
        "Augmented",
        "Dequantised",
        "Diffusion",
        "FenchelYoung",
        "Game",
        "LabelledContrast",
        "MaskLoss",
        "MemberLoss",
        "NegativeELBO",
        "NextToken",
        "OneVsOne",
        "OneVsRest",
        "OneVsRestLoss",
        "PairedViews",
        "PseudoLikelihood",
        "Reconstruction",
        "ReplayCD",
        "TwoViews",
        "VelocityMatching",
    }  # relatives of SoftMin and Margin, rules around another, and rules of one family of energies
    assert named | beyond == set(rules.names())
