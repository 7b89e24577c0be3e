"""The contract of every architecture, over the registry: a new one is tested by being there."""

from __future__ import annotations

import io

import pytest
import torch
from torch import Tensor, nn

from groundstate.errors import Unsupported
from groundstate.nn import architectures
from groundstate.nn.architectures import KINDS, ArchitectureRow
from groundstate.nn.architectures import architectures as registry

ROWS = [pytest.param(row, id=row.name) for row in registry]


def made(row: ArchitectureRow) -> tuple[nn.Module, tuple[Tensor, ...]]:
    assert row.inputs is not None
    inputs = row.inputs(torch.Generator().manual_seed(0))
    return architectures.create(row.name, **row.small), inputs


@pytest.mark.parametrize("row", ROWS)
def test_forward_and_gradients_on_the_smallest_input(row: ArchitectureRow) -> None:
    net, inputs = made(row)
    net.train()
    for p in net.parameters():  # heads and gates that start at 0 hide what is behind them
        if not p.any():
            nn.init.normal_(p, std=0.1, generator=torch.Generator().manual_seed(1))
    out = net(*inputs)
    out = out[0] if isinstance(out, tuple) else out
    assert out.isfinite().all()
    c = torch.randn(out.shape, generator=torch.Generator().manual_seed(2))
    (out * c).sum().backward()
    without = [name for name, p in net.named_parameters() if p.grad is None]
    assert not without, f"no gradient reaches {without}"
    assert row.kind in KINDS and row.summary


@pytest.mark.parametrize("row", ROWS)
def test_state_dict_round_trip_and_seeded_weights(row: ArchitectureRow) -> None:
    net, inputs = made(row)
    again = architectures.create(row.name, **row.small)
    for (name, a), b in zip(net.state_dict().items(), again.state_dict().values(), strict=True):
        assert torch.equal(a, b), f"{name} differs under the same seed"
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    other = architectures.create(row.name, generator=torch.Generator().manual_seed(5), **row.small)
    other.load_state_dict(torch.load(file), strict=True)
    net.eval(), other.eval()
    with torch.no_grad():
        one, two = net(*inputs), other(*inputs)
    one, two = (v[0] if isinstance(v, tuple) else v for v in (one, two))
    assert torch.equal(one, two)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
def test_compiles_in_one_graph(row: ArchitectureRow) -> None:
    net, inputs = made(row)
    net.eval()
    torch._dynamo.reset()
    # kernels of recurrent layers stand in the graph as they are
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        compiled = torch.compile(net, backend="eager", fullgraph=True)(*inputs)
        plain = net(*inputs)
    compiled, plain = (v[0] if isinstance(v, tuple) else v for v in (compiled, plain))
    assert torch.allclose(compiled, plain, atol=1e-6)


@pytest.mark.parametrize("row", [p for p in ROWS if p.values[0].kind == "image"])
def test_images_alone_and_in_a_batch(row: ArchitectureRow) -> None:
    """One image alone gives what it gives in a batch; wrong channels and ranks name both shapes."""
    net, (x,) = made(row)
    net.eval()
    with torch.no_grad():
        assert torch.allclose(net(x)[:1], net(x[:1]), atol=1e-6)
    wrong = torch.zeros(2, x.shape[1] + 1, *x.shape[2:])
    with pytest.raises(ValueError, match=rf"takes \(N, {x.shape[1]}, .*{x.shape[1] + 1}"):
        net(wrong)
    with pytest.raises(ValueError, match="shape"):
        net(x[0])


def test_names_patterns_and_a_near_miss() -> None:
    assert architectures.list("resnet*", kind="image") == [
        "resnet101", "resnet18", "resnet20", "resnet34", "resnet50", "resnet56",
    ]  # fmt: skip
    with pytest.raises(Unsupported, match="did you mean 'resnet18'"):
        architectures.create("resnet_18")
    with pytest.raises(ValueError, match="kind is one of"):
        architectures.architecture(kind="sound", inputs=architectures.rows(1))


def test_describe_takes_no_memory_and_draws() -> None:
    found = architectures.describe("vgg16")
    assert found.parameters == 138_357_544
    assert "features.0" in str(found) and found.drawing.nodes > 15
    small = architectures.describe("lenet", num_classes=3)
    assert small.parameters == 61_706 - 7 * 85
