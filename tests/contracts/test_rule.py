"""One contract for every learning rule, run over the registry: a new rule is tested by being there."""

from __future__ import annotations

import copy
import inspect
import math
import re
import warnings
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

from groundstate.energy import (
    AdversarialEnergy,
    AutoencoderEnergy,
    BilinearEnergy,
    CentroidEnergy,
    ChainEnergy,
    ClassEnergy,
    DeepLatentEnergy,
    Energy,
    FactorGraphEnergy,
    LinearEnergy,
    NetEnergy,
    NormalizingFlowEnergy,
    SequenceEnergy,
    SquaredEnergy,
)
from groundstate.energy.latent.deep.priors import NormalPrior
from groundstate.energy.networks.embedding import PrototypeEnergy
from groundstate.energy.networks.network import NetworkClassEnergy
from groundstate.energy.networks.similarity import SimilarityEnergy
from groundstate.energy.spaces import Real
from groundstate.errors import Unsupported
from groundstate.learn import Rule
from groundstate.learn.base import weighted_mean
from groundstate.nn.adversarial import DenseDiscriminator, DenseGenerator
from groundstate.nn.heads.likelihoods import GaussianLikelihood
from groundstate.nn.tabular import TabularNet
from groundstate.registry import energies as registered_energies
from groundstate.registry import rules

F64 = torch.float64
ROWS = 5


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def randomised(energy: Energy) -> Energy:
    energy = energy.double()
    noise = seeded(3)
    with torch.no_grad():
        for p in energy.parameters():
            p.copy_(0.7 * torch.randn(p.shape, generator=noise, dtype=F64))
    return energy


ENERGIES: dict[str, Callable[[], Energy]] = {
    "Linear": lambda: randomised(LinearEnergy(3, 4)),
    "Squared": lambda: randomised(SquaredEnergy(3, 2)),
    "Centroid": lambda: randomised(CentroidEnergy(3, 2)),
    "Bilinear": lambda: randomised(BilinearEnergy(3, 2)),
    "Chain": lambda: randomised(ChainEnergy(2, 3, 3)),
    "Net": lambda: randomised(NetEnergy(2, net=(4,), confine=1.0)),
    "Code": lambda: randomised(
        DeepLatentEnergy(nn.Linear(1, 2), GaussianLikelihood(2), NormalPrior(1))
    ),
    "Players": lambda: randomised(
        AdversarialEnergy(DenseDiscriminator(2, (4,)), DenseGenerator(2, (4,), [1, 1]), 2)
    ),
    "Coder": lambda: randomised(
        AutoencoderEnergy(nn.Linear(2, 1), nn.Linear(1, 2), GaussianLikelihood(2), NormalPrior(1))
    ),
    "Prototypes": lambda: randomised(PrototypeEnergy(3, 2, 3, nn.Linear(3, 2))),
    "Two encoders": lambda: randomised(
        SimilarityEnergy(Real(3), Real(2), nn.Linear(3, 2), nn.Linear(2, 2), 2.0)
    ),
    "Flow": lambda: randomised(
        NormalizingFlowEnergy(2, "cnf", options={"hidden_layer_sizes": (4,), "method": "rk4"})
    ),
    "Members": lambda: randomised(
        NetworkClassEnergy(3, 4, TabularNet(3, (4,), 4, members=2, mean="probabilities"))
    ),
    "Labels": lambda: randomised(ClassEnergy(nn.Linear(3, 4), 3, 4, normalise=True)),
    "Denoiser": lambda: randomised(registered_energies["DenoiserEnergy"].make()),  # type: ignore[misc]
    "Field": lambda: randomised(FactorGraphEnergy([2, 2], [(0,), (0, 1)])),
    "Sequence": lambda: randomised(SequenceEnergy(nn.Sequential(nn.Embedding(4, 3)), 3, 3)),
}
# a denoiser's energy is learned by its slope alone: rules that draw or descend find no bottom
OWN: dict[str, tuple[str, ...]] = {
    "Denoiser": ("Diffusion", "DenoisingScoreMatching"),
    "Players": ("Game",),
    "Two encoders": ("PairedViews", "InBatch"),
    "Flow": ("VelocityMatching",),
    "Members": ("MemberLoss",),
}


def batch_for(energy: Energy) -> dict[str, Tensor]:
    noise = seeded(1)
    return {
        name: space.draw(ROWS, generator=noise, dtype=F64)
        for name, space in energy.spaces.items()
        if name in ("x", "y")
    }


def made(name: str, energy: Energy) -> Rule:
    return rules[name].make(energy).double()  # type: ignore[misc,no-any-return]


def pairs(wanted: bool = True) -> Iterator[object]:
    for name in rules.names():
        for label, make in ENERGIES.items():
            if name not in OWN.get(label, (name,)):
                continue
            energy = make()
            fits = made(name, energy).reason_against(energy, batch_for(energy)) is None
            if fits is wanted:
                yield pytest.param(name, label, id=f"{name}-{label}")


FIT, MISFIT = list(pairs()), list(pairs(wanted=False))
# Where only the gradient means something, the loss has no slope to compare it with.
OBJECTIVES = [p for p in FIT if made(p.values[0], ENERGIES["Linear"]()).is_objective]  # type: ignore[attr-defined]


def loss_of(name: str, energy: Energy, batch: dict[str, Tensor], seed: int = 0) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Naive warns where it is unsafe
        loss: Tensor = made(name, energy)(energy, batch, generator=seeded(seed)).loss
    return loss


def take(batch: dict[str, Tensor], rows: list[int]) -> dict[str, Tensor]:
    return {name: v[rows] for name, v in batch.items()}


@pytest.mark.parametrize("name", rules.names())
def test_docstring_says_what_it_lowers_and_raises(name: str) -> None:
    row = rules[name]
    doc = inspect.getdoc(row.obj) or ""
    first = doc.split("\n\n")[0].lower()
    assert re.search(r"\blowers\b", first), "what does it lower?"
    assert re.search(r"\braises\b", first), "what does it raise?"
    assert doc.startswith(":math:`"), "formula first"
    assert "Parameters\n----------" in doc and ">>>" in doc
    assert row.formula and row.make is not None
    assert set(inspect.signature(row.obj.__init__).parameters) >= {"self"}


@pytest.mark.parametrize("name", rules.names())
def test_every_rule_fits_some_energy(name: str) -> None:
    energies = [make() for make in ENERGIES.values()]
    assert any(made(name, e).reason_against(e, batch_for(e)) is None for e in energies)


@pytest.mark.parametrize(("name", "label"), FIT)
def test_terms(name: str, label: str) -> None:
    energy = ENERGIES[label]()
    batch = batch_for(energy)
    rule = made(name, energy)
    state = torch.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        terms = rule(energy, batch, generator=seeded())
    assert torch.equal(torch.get_rng_state(), state), "no rule touches the process-wide stream"
    for part in (terms.loss, terms.positive, terms.contrast):
        assert part.shape == (ROWS,) and part.dtype == F64 and torch.isfinite(part).all()
    assert torch.allclose(terms.loss, terms.positive - terms.contrast, atol=1e-12)
    assert terms.exact == rule.is_exact(energy, batch)
    assert terms.is_objective == rule.is_objective
    assert terms.loss.requires_grad
    assert torch.equal(terms.loss, loss_of(name, energy, batch)), "same seed, same loss"


@pytest.mark.parametrize(("name", "label"), MISFIT)
def test_refusals_have_a_reason(name: str, label: str) -> None:
    energy = ENERGIES[label]()
    batch = batch_for(energy)
    rule = made(name, energy)
    reason = rule.reason_against(energy, batch)
    assert reason is not None and len(reason.split()) > 4
    with pytest.raises(Unsupported, match=re.escape(reason)):
        rule.require(energy, batch)


@pytest.mark.parametrize(("name", "label"), FIT)
def test_weight_two_is_the_row_twice(name: str, label: str) -> None:
    """For every row where nothing is drawn, in the mean where something is."""
    energy = ENERGIES[label]()
    batch = batch_for(energy)
    weight = torch.tensor([1.0, 2.0, 1.0, 3.0, 1.0], dtype=F64)
    rows = [0, 1, 1, 2, 3, 3, 3, 4]
    once, again = loss_of(name, energy, batch), loss_of(name, energy, batch, 1)
    if torch.allclose(once, again, atol=1e-6):
        weighted = weighted_mean(once, weight)
        repeated = loss_of(name, energy, take(batch, rows)).mean()
        assert torch.allclose(weighted, repeated, atol=1e-6)
        return
    seeds = range(60)
    with torch.no_grad():
        a = torch.stack([weighted_mean(loss_of(name, energy, batch, s), weight) for s in seeds])
        repeated_batch = take(batch, rows)
        b = torch.stack([loss_of(name, energy, repeated_batch, s).mean() for s in seeds])
    stderr = math.sqrt((float(a.var()) + float(b.var())) / len(seeds))
    assert abs(float(a.mean() - b.mean())) < 5 * stderr + 1e-10


@pytest.mark.parametrize(("name", "label"), FIT)
def test_order_of_rows_does_not_matter(name: str, label: str) -> None:
    energy = ENERGIES[label]()
    batch = batch_for(energy)
    once = loss_of(name, energy, batch)
    if not torch.equal(once, loss_of(name, energy, batch, 1)):
        return  # rows have their own draws
    order = [3, 0, 4, 1, 2]
    assert torch.allclose(loss_of(name, energy, take(batch, order)), once[order], atol=1e-6)


@pytest.mark.parametrize(("name", "label"), OBJECTIVES)
def test_gradient_is_that_of_the_loss(name: str, label: str) -> None:
    """Central differences with the same draws."""
    energy = ENERGIES[label]()
    batch = batch_for(energy)
    parameters = [p for p in energy.parameters() if p.requires_grad]
    total = loss_of(name, energy, batch).sum()
    grads = torch.autograd.grad(total, parameters, allow_unused=True)
    h = 1e-6
    for p, g in zip(parameters, grads, strict=True):
        for i in {0, p.numel() - 1}:
            sums = []
            for step in (h, -h):
                with torch.no_grad():
                    p.view(-1)[i] += step
                with torch.enable_grad():
                    sums.append(float(loss_of(name, energy, batch).sum().detach()))
                with torch.no_grad():
                    p.view(-1)[i] -= step
            slope = 0.0 if g is None else float(g.reshape(-1)[i])
            assert math.isclose((sums[0] - sums[1]) / (2 * h), slope, rel_tol=1e-4, abs_tol=2e-4)


@pytest.mark.parametrize(("name", "label"), FIT)
def test_copies_and_saved_states_behave_alike(name: str, label: str) -> None:
    energy = ENERGIES[label]()
    batch = batch_for(energy)
    rule = made(name, energy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rule(energy, batch, generator=seeded())
        twin = copy.deepcopy(rule)
        loaded = made(name, energy)
        loaded.load_state_dict(rule.state_dict())
        losses = [r(energy, batch, generator=seeded(1)).loss for r in (rule, twin, loaded)]
    assert torch.equal(losses[0], losses[1]) and torch.equal(losses[0], losses[2])
    assert not [n for n, _ in rule.named_parameters() if n.startswith("energy")]
