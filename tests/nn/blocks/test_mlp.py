"""Dense networks: notation, counts, options, files of earlier versions."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn import MLP, Dropout, Residual, network
from groundstate.store import dumps, loads

OLD = Path(__file__).parent / "fixtures" / "mlp-sizes.gs"


def rows(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize(
    ("sizes", "count"), [((1, 3, 1), 10), ((1, 3, 3, 1), 22), ((3, 4, 2, 3, 2), 43)]
)
def test_counts(sizes: tuple[int, ...], count: int) -> None:
    net = MLP(sizes[0], sizes[1:-1], sizes[-1])
    assert net.n_parameters == count
    assert net.sizes == sizes and net.widths == sizes[1:-1]
    assert net.depth == len(sizes) - 2 and net.capacity == sum(sizes[1:-1])


def test_defaults_are_those_of_the_signature() -> None:
    net = MLP(7)
    assert net.sizes == (7, 100, 1)
    assert isinstance(net.layers[1], nn.ReLU) and len(net.layers) == 3


def test_loop_equals_matrix_form() -> None:
    net = MLP(3, (4, 5), 2, "tanh", generator=torch.Generator().manual_seed(3)).double()
    x = rows(6, 3)
    with torch.no_grad():
        out = net(x)
        for i in range(6):
            a = x[i].tolist()
            linear = [m for m in net.layers if isinstance(m, nn.Linear)]
            for j, layer in enumerate(linear):
                z = [
                    float(layer.bias[k])
                    + sum(float(layer.weight[k, d]) * v for d, v in enumerate(a))
                    for k in range(layer.out_features)
                ]
                last = j == len(linear) - 1
                a = z if last else torch.tensor(z, dtype=torch.float64).tanh().tolist()
            assert out[i].tolist() == pytest.approx(a, abs=1e-12)


def test_the_2_1_2_example() -> None:
    net = MLP(2, (1,), 2, "sigmoid", "sigmoid").double()
    with torch.no_grad():
        net.layers[0].weight.copy_(torch.tensor([[1.0, -2.0]]))
        net.layers[0].bias.fill_(0.5)
        net.layers[2].weight.copy_(torch.tensor([[2.0], [-1.0]]))
        net.layers[2].bias.copy_(torch.tensor([0.0, 1.0]))
        x = torch.tensor([[1.0, 0.5]], dtype=torch.float64)
        assert net.layers[:2](x).item() == pytest.approx(0.622459, abs=5e-7)
        assert net(x)[0].tolist() == pytest.approx([0.776419, 0.593280], abs=5e-7)


def test_an_appended_one_is_the_bias() -> None:
    net = MLP(3, (), 2).double()
    nn.init.normal_(net.layers[0].bias, generator=torch.Generator().manual_seed(1))
    x = rows(5, 3)
    W = torch.cat([net.layers[0].weight, net.layers[0].bias[:, None]], 1)
    joined = torch.cat([x, torch.ones(5, 1, dtype=x.dtype)], 1)
    assert torch.allclose(net(x), joined @ W.T, atol=1e-12)


def test_no_hidden_layer_is_the_linear_model() -> None:
    net = MLP(4, (), 3)
    assert [type(m) for m in net.layers] == [nn.Linear] and net.depth == 0


def test_wrong_width_names_both_shapes() -> None:
    with pytest.raises(
        ValueError, match=r"maps \(B, 3\) to \(B, 1\), got an input of shape \(2, 4\)"
    ):
        MLP(3)(torch.zeros(2, 4))
    with pytest.raises(ShapeError):
        MLP(3)(torch.tensor(1.0))


def test_activation_per_layer() -> None:
    net = MLP(2, (4, 4, 4), 1, ["tanh", "relu", nn.LeakyReLU(0.2)])
    kinds = [type(m) for m in net.layers if not isinstance(m, nn.Linear)]
    assert kinds == [nn.Tanh, nn.ReLU, nn.LeakyReLU]
    with pytest.raises(ValueError, match="2 layers, 1 entries"):
        MLP(2, (4, 4), 1, ["tanh"])


def test_a_given_module_is_not_shared_between_layers() -> None:
    net = MLP(2, (4, 4), 1, nn.PReLU())
    slopes = [m for m in net.modules() if isinstance(m, nn.PReLU)]
    assert len(slopes) == 2 and slopes[0].weight is not slopes[1].weight


def test_maxout_layers_are_k_times_as_wide() -> None:
    net = MLP(2, (5,), 1, "maxout")
    assert net.layers[0].out_features == 10 and net.layers[2].in_features == 5
    assert net(torch.zeros(3, 2)).shape == (3, 1)
    with pytest.raises(Unsupported, match="maxout"):
        MLP(2, (5, 5), 1, "maxout", residual=True)


def test_norm_before_or_after_the_activation() -> None:
    pre = MLP(3, (4,), 1, norm="batch")
    assert [type(m) for m in pre.layers] == [nn.Linear, nn.BatchNorm1d, nn.ReLU, nn.Linear]
    assert pre.layers[0].bias is None and pre.layers[3].bias is not None
    post = MLP(3, (4,), 1, norm="batch", norm_position="post")
    assert [type(m) for m in post.layers] == [nn.Linear, nn.ReLU, nn.BatchNorm1d, nn.Linear]
    assert post.layers[0].bias is not None
    layer = MLP(3, (4,), 1, norm="layer")
    assert layer.layers[0].bias is not None  # a bias before layer norm is not redundant


def test_dropout_acts_in_training_only() -> None:
    net = MLP(3, (50,), 1, dropout=0.5)
    x = torch.ones(4, 3)
    assert sum(isinstance(m, Dropout) for m in net.modules()) == 1
    assert torch.equal(net.eval()(x), net.eval()(x))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        assert not torch.equal(net.train()(x), net.train()(x))


def test_residual_layers() -> None:
    net = MLP(3, (8, 8, 4), 2, norm="layer", residual=True).double()
    blocks = [m for m in net.modules() if isinstance(m, Residual)]
    assert len(blocks) == 2
    assert blocks[0].project is None and isinstance(blocks[1].project, nn.Linear)
    x = rows(5, 3)
    h = net.layers[0](x)
    h = h + blocks[0].branch(h)
    h = blocks[1].project(h) + blocks[1].branch(h)
    assert torch.allclose(net(x), net.layers[3:](h), atol=1e-12)


def test_same_generator_same_weights_and_no_global_draws() -> None:
    before = torch.random.get_rng_state()
    a, b = (MLP(3, (5,), 1, generator=torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters()))
    c = MLP(3, (5,), 1, generator=torch.Generator().manual_seed(8))
    assert not torch.equal(a.layers[0].weight, c.layers[0].weight)


@pytest.mark.parametrize(
    "net",
    [
        MLP(3, (4, 4), 2, ["tanh", "maxout"], "softmax", norm="layer", dropout=0.1),
        MLP(3, (4, 4), 2, norm="batch", residual=True),
        MLP(3, (4,), 1, nn.LeakyReLU(0.2), bias=False),
    ],
    ids=["lists", "residual", "module"],
)
def test_files_give_the_same_network(net: MLP) -> None:
    x = rows(4, 3).float()
    again = loads(dumps(net.eval()))
    assert torch.equal(again(x), net(x))
    assert again.sizes == net.sizes


def test_a_file_of_the_first_version_opens() -> None:
    # written when the constructor took MLP(sizes, activation)
    net = loads(OLD.read_bytes())
    assert isinstance(net, MLP) and net.sizes == (2, 3, 1) and net.activation == "gelu"
    x = torch.tensor([[1.0, -2.0]])
    assert net(x).item() == pytest.approx(-0.23544475436210632, abs=1e-7)
    assert torch.equal(loads(dumps(net))(x), net(x))


def test_network_is_the_module_or_an_mlp() -> None:
    module = nn.Linear(3, 1)
    assert network(module, 3, 1) is module
    made = network((4,), 3, 1)
    assert isinstance(made, MLP) and made.activation == "tanh" and made.init == "lecun"


def test_stacked_parameters_run_under_vmap() -> None:
    net = MLP(3, (4,), 1).double()
    params = dict(net.named_parameters())
    x = rows(5, 3)
    stacked = {n: torch.stack([p, 2 * p]) for n, p in params.items()}
    out = torch.func.vmap(lambda p: torch.func.functional_call(net, p, (x,)))(stacked)
    assert torch.allclose(out[0], net(x), atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MLP((2, 8, 3)), r"write MLP\(2, \(8,\), 3\)"),
        (lambda: MLP(0), "sizes of an MLP are positive integers, got in_features=0"),
        (lambda: MLP(2, (0,)), "positive integers"),
        (lambda: MLP(2, (3,), 1, "rely"), "activation 'rely' is not known; use one of identity"),
        (lambda: MLP(2, (3,), 1, norm="bach"), "norm 'bach' is not known; use one of batch"),
        (lambda: MLP(2, (3,), 1, init="x"), "init 'x' is not known"),
        (lambda: MLP(2, (3,), 1, dropout=1.0), r"probability in \[0, 1\), got 1.0"),
        (lambda: MLP(2, (3,), 1, norm_position="in"), "norm_position must be 'pre' or 'post'"),
    ],
)
def test_errors(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_torch_can_save_the_state() -> None:
    net, other = MLP(3, (4,), 1), MLP(3, (4,), 1, generator=torch.Generator().manual_seed(9))
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(other(torch.ones(1, 3)), net(torch.ones(1, 3)))


def test_shapes_alone_cost_no_memory() -> None:
    with torch.device("meta"):
        net = MLP(10**6, (10**6, 10**5), 10, norm="batch", residual=True)
    assert all(t.is_meta for t in net.state_dict().values())
    assert net.n_parameters > 10**12
    from groundstate.nn import summary

    assert summary(net, (10**6,)).multiply_adds == 10**12 + 2 * 10**11 + 10**6
