"""Steps of populations on a CPU: whoever does them, on however many threads, the result is one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from groundstate.compute.device import threads
from groundstate.energy import NetClassEnergy
from groundstate.energy.networks.location import LocationHead
from groundstate.energy.networks.network import NetworkEnergy
from groundstate.learn import Naive, SoftMin, Stochastic, fit, fit_population
from groundstate.learn.train.population import steps as population_steps
from groundstate.learn.train.population.programs import Looped, Vectorised, Written
from groundstate.learn.train.population.run import PopulationRun
from groundstate.learn.train.population.steps import Steps

SOLVER = Stochastic(batch_size=16, max_epochs=3, tol=None, schedule="cosine")
LR = [0.003, 0.01, 0.03, 0.001, 0.02]


def table(dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(70, 6, generator=g, dtype=dtype)
    return {"x": x, "y": (x @ torch.randn(6, 3, generator=g, dtype=dtype)).argmax(1)}


def nets(which: list[int], activation: str = "tanh", dtype: Any = torch.float32) -> list[Any]:
    return [
        NetClassEnergy(
            6, 3, (9, 7), activation=activation, generator=torch.Generator().manual_seed(s)
        ).to(dtype)
        for s in which
    ]


def theta(energies: list[Any]) -> list[Tensor]:
    return [nn.utils.parameters_to_vector(e.parameters()).detach() for e in energies]


def trained(
    which: list[int], n: int, activation: str = "tanh", dtype: Any = torch.float32, **settings: Any
) -> list[Tensor]:
    energies = nets(which, activation, dtype)
    with threads(n):
        fit_population(
            energies, table(dtype), SoftMin(), SOLVER, lr=[LR[i] for i in which],
            strength=[float(i) for i in which], random_state=settings.pop("random_state", 1), **settings,
        )  # fmt: skip
    return theta(energies)


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[type]:
    """Which kind does the steps; all that is large is small here, so that threads share it."""
    kinds: list[type] = []
    begin = PopulationRun.begin

    def spy(self: PopulationRun, stack: Any) -> None:
        kinds.append(type(self.program if self.compiled is None else self.compiled))
        begin(self, stack)

    monkeypatch.setattr(PopulationRun, "begin", spy)
    monkeypatch.setattr(population_steps, "_SHARE", 1)
    monkeypatch.setattr(population_steps, "_BLOCK", 5 * 16 * 2)  # two steps at a time
    return kinds


@pytest.mark.parametrize("seeds", [1, [4, 5, 6, 7, 8]])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_bits_depend_neither_on_threads_nor_on_company(
    chosen: list[type], activation: str, seeds: Any
) -> None:
    one = trained([0, 1, 2, 3, 4], 1, activation, random_state=seeds)
    three = trained([0, 1, 2, 3, 4], 3, activation, random_state=seeds)
    own = seeds if isinstance(seeds, int) else [seeds[1], seeds[3]]
    few = trained([1, 3], 2, activation, random_state=own)
    assert set(chosen) == {Steps}
    for a, b in [*zip(one, three, strict=True), (one[1], few[0]), (one[3], few[1])]:
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("activation", "dtype"), [("silu", torch.float32), ("tanh", torch.float64)]
)
def test_written_passes_agree_with_the_vectorised_program(
    chosen: list[type], activation: str, dtype: torch.dtype
) -> None:
    runs = [trained([0, 1, 2, 3, 4], n, activation, dtype) for n in (1, 2)]
    assert set(chosen) == {Written}
    runs.append(trained([0, 1, 2, 3, 4], 1, activation, dtype, backend="reference"))
    assert chosen[-1] is Vectorised
    for a, b, c in zip(*runs, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-6)
        torch.testing.assert_close(a, c, rtol=0, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_values_as_targets_equal_separate_fits(chosen: list[type], weighted: bool) -> None:
    g = torch.Generator().manual_seed(2)
    x = torch.randn(60, 4, generator=g)
    data = {"x": x, "y": x[:, :2].sin()}
    weight = torch.randint(1, 3, (60,), generator=g).float() if weighted else None

    def made(seed: int) -> NetworkEnergy:
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        return NetworkEnergy(4, LocationHead("squared_error", 2), net)

    solver = Stochastic(batch_size=16, max_epochs=3, tol=None)
    with torch.random.fork_rng():
        together, alone = [[made(s) for s in range(3)] for _ in range(2)]
    fit_population(together, data, Naive(over="y"), solver, sample_weight=weight, random_state=3)
    assert set(chosen) == {Steps}
    for energy in alone:
        fit(energy, data, Naive(over="y"), solver, sample_weight=weight, random_state=3)
    for a, b in zip(theta(together), theta(alone), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5)


def test_members_that_rest_cost_nothing_and_stay(chosen: list[type]) -> None:
    energies = nets([0, 1])
    before = theta(energies)[0]
    solver = Stochastic(batch_size=16, max_epochs=12, tol=1e-3, patience=2)
    histories = fit_population(
        energies, table(), SoftMin(), solver, lr=[1e-12, 0.02], random_state=0
    )
    assert set(chosen) == {Steps}
    assert histories[0].stop == "plateau" and histories[0].n_iter < histories[1].n_iter
    torch.testing.assert_close(theta(energies)[0], before, rtol=0, atol=1e-8)
    assert histories[1].objective[-1] < 0.7 * histories[1].objective[0]


def convolutional(norm: str) -> nn.Module:
    norms = {"batch": nn.BatchNorm2d, "group": lambda n: nn.GroupNorm(2, n)}
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), norms[norm](4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 2, (3, 2), stride=2, dilation=(1, 2)), nn.Flatten(), nn.LazyLinear(3),
    )  # fmt: skip


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=True)
        self.body.self_attn.dropout = 0.0  # the weights of attention have no key
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.body(x).mean(1))
        return out


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.GRU(8, 5, batch_first=True), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.body(x)[0][:, -1])
        return out


MODULES: dict[str, tuple[Any, tuple[int, ...], type]] = {
    "convolutions, batch norm": (lambda: convolutional("batch"), (1, 8, 8), Vectorised),
    "convolutions, group norm": (lambda: convolutional("group"), (1, 8, 8), Vectorised),
    "attention": (Attention, (4, 8), Vectorised),
    "recurrent": (Recurrent, (4, 8), Looped),
    "dropout": (
        lambda: nn.Sequential(nn.Linear(8, 6), nn.ELU(), nn.Dropout(0.4), nn.Linear(6, 3)),
        (8,), Vectorised,
    ),
}  # fmt: skip


@pytest.mark.parametrize("batch_size", [16, None])
@pytest.mark.parametrize("name", MODULES)
def test_any_module_can_be_a_population(
    chosen: list[type], name: str, batch_size: int | None
) -> None:
    make, shape, kind = MODULES[name]
    g = torch.Generator().manual_seed(0)
    x = torch.randn(48, *shape, generator=g, dtype=torch.float64)
    data = {"x": x, "y": torch.randint(3, (48,), generator=g)}

    def made(seed: int) -> NetClassEnergy:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            net = make().double()
            net(x[:4])
        return NetClassEnergy(shape, 3, net)

    together, alone = ([made(s) for s in range(3)] for _ in range(2))
    solver = Stochastic(batch_size=batch_size, max_epochs=2, tol=None)
    fit_population(together, data, SoftMin(), solver, lr=[0.01, 0.02, 0.03], random_state=[4, 5, 6])
    assert set(chosen) == {kind}
    for energy, lr, seed in zip(alone, (0.01, 0.02, 0.03), (4, 5, 6), strict=True):
        solver = Stochastic(batch_size=batch_size, max_epochs=2, tol=None, lr=lr)
        fit(energy, data, SoftMin(), solver, random_state=seed)
    for a, b in zip(together, alone, strict=True):
        for (n, p), q in zip(a.state_dict().items(), b.state_dict().values(), strict=True):
            torch.testing.assert_close(p, q, rtol=1e-7, atol=1e-9, msg=n)


def test_defects_of_modules_are_seen(chosen: list[type]) -> None:
    class Broken(nn.Linear):
        def forward(self, input: Tensor) -> Tensor:
            raise KeyError("a defect")

    with pytest.raises(KeyError, match="a defect"):
        fit_population([NetClassEnergy(6, 3, Broken(6, 3))], table(), SoftMin(), SOLVER)
    wrong = NetClassEnergy(6, 3, nn.Sequential(nn.Linear(6, 4), nn.ELU(), nn.Linear(5, 3)))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        fit_population([wrong], table(), SoftMin(), SOLVER)
