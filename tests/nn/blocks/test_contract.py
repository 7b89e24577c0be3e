"""The contract of a block, over the registry: rows are kept, gradients are right."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import groundstate
from groundstate.energy import Energy, gradcheck
from groundstate.energy.spaces import Real
from groundstate.errors import ShapeError
from groundstate.learn import NLL
from groundstate.nn import ACTIVATIONS, HIDDEN, MLP, NotDifferentiable, check_block, norm
from groundstate.nn.blocks.contract import blocks
from groundstate.store import dumps, loads

NORMS = {
    "batch": norm("batch", 4), "layer": norm("layer", 4), "group": norm("group", 4, groups=2),
    "images": norm("instance", 4, 2), "layer of images": norm("layer", 4, 2),
}  # fmt: skip


def example(name: str, n: int = 5) -> Tensor:
    batch = blocks[name].batch
    assert batch is not None
    x: Tensor = batch(n, torch.Generator().manual_seed(0))["x"]
    return x


def made(name: str) -> nn.Module:
    make = blocks[name].make
    assert make is not None
    module: nn.Module = make()
    return module


@pytest.mark.parametrize("name", blocks.names())
def test_every_block_is_differentiable(name: str) -> None:
    report = check_block(made(name), example(name))
    assert report.input < 1e-6 and report.parameters < 1e-6
    assert report.n_parameters == sum(p.numel() for p in made(name).parameters())


@pytest.mark.parametrize("name", blocks.names())
def test_rows_do_not_see_each_other(name: str) -> None:
    module, x = made(name).double().eval(), example(name, 6).double()
    whole = module(x)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    assert torch.allclose(module(x[order]), whole[order], atol=1e-12)
    assert torch.allclose(module(x[:1]), whole[:1], atol=1e-12)


@pytest.mark.parametrize("name", blocks.names())
def test_every_block_can_be_stored(name: str) -> None:
    module, x = made(name).eval(), example(name)
    assert torch.equal(loads(dumps(module))(x), module(x))


@pytest.mark.parametrize("name", [*HIDDEN, "softmax", "log_softmax", "maxout"])
def test_activations_are_blocks(name: str) -> None:
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
    check_block(ACTIVATIONS[name](), x)


@pytest.mark.parametrize("name", NORMS)
def test_norms_are_blocks(name: str) -> None:
    shape = (5, 4, 3, 3) if "images" in name else (5, 4)
    check_block(NORMS[name], torch.randn(shape, generator=torch.Generator().manual_seed(1)))


def test_blocks_stack_freely() -> None:
    net = nn.Sequential(
        made("Whiten"), MLP(3, (8,), 6, residual=True, norm="layer"), made("Maxout"), made("Sin")
    )
    assert check_block(net, example("Whiten")).output_shape == (5, 3)


class Detached(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.detach() * 2


class Unused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        return 2 * x


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x**2

    @staticmethod
    def backward(ctx: object, g: Tensor) -> Tensor:
        return g


class WrongBlock(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = Wrong.apply(x)
        return out


class Broadcast(nn.Module):
    """(B, 1) minus (B,) is (B, B): the classic slip."""

    def forward(self, x: Tensor) -> Tensor:
        return (x - x[:, 0])[: len(x) - 1]


class Pairs(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[:, :1] - x[:, 0]


@pytest.mark.parametrize(
    ("block", "error", "message"),
    [
        (Detached(), NotDifferentiable, "output of Detached is cut off from its input"),
        (Unused(), NotDifferentiable, "Unused has no gradient in 'w'"),
        (WrongBlock(), NotDifferentiable, "gradient of WrongBlock in 'input' is off by"),
        (Broadcast(), ShapeError, r"Broadcast returned \(2, 3\) for 3 rows; a block keeps"),
        (Pairs(), ShapeError, r"Pairs returned \(1, 1\) for one row and \(3, 3\) for 3"),
    ],
)
def test_what_is_not_a_block(block: nn.Module, error: type[Exception], message: str) -> None:
    x = torch.randn(3, 3, generator=torch.Generator().manual_seed(0))
    with pytest.raises(error, match=message):
        check_block(block, x)


class Leaky(Energy):
    """Broadcasting (B, 1) against (B,) gives B² energies."""

    def __init__(self) -> None:
        super().__init__(x=Real(1), y=Real(1))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return (x - y.squeeze(1)).square().sum(1, keepdim=True).expand(-1, len(x))


class Fit(Energy):
    """Any module makes an energy: e = ‖y − net(x)‖²."""

    def __init__(self) -> None:
        super().__init__(x=Real(2), y=Real(1))
        self.net = MLP(2, (4,), 1, "tanh")

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return (y - self.net(x)).square().sum(1)


def test_an_energy_returns_one_number_per_row() -> None:
    with pytest.raises(ShapeError, match=r"must return one energy per row, shape \(3,\)"):
        Leaky()(x=torch.zeros(3, 1), y=torch.zeros(3, 1))
    with pytest.raises(ShapeError, match="same leading batch size"):
        Fit()(x=torch.zeros(3, 2), y=torch.zeros(1, 1))


def test_gradients_of_a_users_energy_come_free() -> None:
    g = torch.Generator().manual_seed(0)
    values = {"x": torch.randn(4, 2, generator=g), "y": torch.randn(4, 1, generator=g)}
    assert gradcheck(Fit(), values).worst < 1e-4


def _case(name: str) -> tuple[Energy, dict[str, Tensor], dict[str, Tensor]]:
    """A fitted energy, its rows, and the gradient of its penalty."""
    from sklearn.datasets import load_diabetes, load_iris

    if name in ("LinearRegression", "Ridge"):
        X, y = load_diabetes(return_X_y=True)
        model = getattr(groundstate, name)().fit(X, y)
        data = {"x": torch.from_numpy(X), "y": torch.from_numpy(y)[:, None]}
    elif name == "LogisticRegression":
        X, y = load_iris(return_X_y=True)
        model = groundstate.LogisticRegression(C=1.0, tol=1e-10).fit(X, y)
        data = {"x": torch.from_numpy(X), "y": torch.from_numpy(y)}
    else:
        X, _ = load_iris(return_X_y=True)
        model = groundstate.ProbabilisticPCA(2).fit(X)
        data = {"x": torch.from_numpy(X)}
    energy: Energy = model.energy_.double()
    ridge = (
        {}
        if name in ("LinearRegression", "ProbabilisticPCA")
        else {"W": energy.W.detach() / len(X)}
    )
    return energy, data, ridge


@pytest.mark.parametrize(
    "name", ["LinearRegression", "Ridge", "LogisticRegression", "ProbabilisticPCA"]
)
def test_solvers_end_where_mini_batch_gradients_vanish(name: str) -> None:
    """Closed forms and second-order solvers agree with the gradient path: batch by batch the
    gradients of the rule sum to zero, with that of the penalty."""
    energy, data, ridge = _case(name)
    n = len(data["x"])
    parameters = dict(energy.named_parameters())
    total = {key: ridge.get(key, torch.zeros_like(p)) for key, p in parameters.items()}
    for rows in torch.arange(n).split(37):
        loss = NLL()(energy, {key: v[rows] for key, v in data.items()}).loss.sum() / n
        for key, g in zip(parameters, torch.autograd.grad(loss, list(parameters.values()))):
            total[key] = total[key] + g
    scale = {"LinearRegression": 100.0, "Ridge": 100.0}.get(name, 1.0)  # of the target
    assert all(g.abs().max() < 1e-8 * scale for g in total.values())
