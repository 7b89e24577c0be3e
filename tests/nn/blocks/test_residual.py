"""Residual blocks: identity, Jacobian, unrolled sums, order, the scalar net by hand."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn import PreActBlock, Residual, dense_branch, unravel
from groundstate.store import dumps, loads


def rows(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def block(d: int = 3, seed: int = 0, **options: object) -> Residual:
    branch = dense_branch(d, d, "tanh", generator=torch.Generator().manual_seed(seed))
    return Residual(branch, **options).double()  # type: ignore[arg-type]


def test_a_zero_branch_is_the_identity() -> None:
    x = rows(4, 3)
    assert torch.equal(block(scale="zero")(x), x)
    assert not torch.equal(block()(x), x)
    assert torch.equal(block(scale=0.0)(x), x)


def test_jacobian_is_identity_plus_the_branch() -> None:
    net, x = block(), rows(1, 3)[0]
    whole = torch.autograd.functional.jacobian(net, x)
    inner = torch.autograd.functional.jacobian(net.branch, x)
    assert torch.allclose(whole, torch.eye(3, dtype=x.dtype) + inner, atol=1e-12)


def test_three_blocks_unrolled() -> None:
    f = [block(seed=k) for k in range(3)]
    x = rows(5, 3)
    h1 = x + f[0].branch(x)
    h2 = h1 + f[1].branch(h1)
    unrolled = x + f[0].branch(x) + f[1].branch(h1) + f[2].branch(h2)
    assert torch.allclose(nn.Sequential(*f)(x), unrolled, atol=1e-12)


def test_linear_blocks_are_a_sum_over_paths() -> None:
    K, x = 4, rows(5, 3)
    f = [nn.Linear(3, 3, bias=False).double() for _ in range(K)]
    for k, layer in enumerate(f):
        nn.init.normal_(layer.weight, generator=torch.Generator().manual_seed(k))
    total, paths = torch.zeros_like(x), 0
    for size in range(K + 1):
        for path in combinations(range(K), size):
            h = x
            for k in path:
                h = f[k](h)
            total, paths = total + h, paths + 1
    assert paths == 2**K
    assert torch.allclose(nn.Sequential(*map(Residual, f))(x), total, atol=1e-10)


def test_pre_activation_order_is_the_default() -> None:
    kinds = [type(m) for m in dense_branch(3, 3, norm="layer")]
    assert kinds == [nn.LayerNorm, nn.ReLU, nn.Linear]
    kinds = [type(m) for m in dense_branch(3, 3, norm="layer", order="post")]
    assert kinds == [nn.Linear, nn.LayerNorm, nn.ReLU]


def test_post_activation_never_lowers_a_state() -> None:
    h = rows(20, 4)
    for k in range(5):
        generator = torch.Generator().manual_seed(k)
        after = Residual(dense_branch(4, 4, order="post", generator=generator)).double()(h)
        assert bool((after >= h).all()) and bool((after > h).any())
        h = after.detach()


def test_projection_where_widths_differ() -> None:
    net = Residual(dense_branch(3, 5), "auto")
    assert isinstance(net.project, nn.Linear) and net.project.weight.requires_grad
    assert net(torch.zeros(2, 3)).shape == (2, 5)
    assert Residual(dense_branch(3, 3), "auto").project is None
    with pytest.raises(ShapeError, match=r"returned \(2, 5\) where the skip has \(2, 3\)"):
        Residual(dense_branch(3, 5))(torch.zeros(2, 3))


def test_scale_by_depth() -> None:
    x, net = rows(4, 3), block(scale="depth", depth=9)
    assert torch.allclose(net(x), x + net.branch(x) / 3, atol=1e-12)


def test_the_scalar_skip_net() -> None:
    """h1 = σ(w0 x), h2 = h1 + σ(w1 h1), E = w2 h2, loss (E − y)²."""

    def unit() -> nn.Linear:
        layer = nn.Linear(1, 1, bias=False).double()
        nn.init.ones_(layer.weight)
        return layer

    w0, w1, w2 = unit(), unit(), unit()
    skip = Residual(nn.Sequential(w1, nn.Sigmoid()))
    h2 = nn.Sequential(w0, nn.Sigmoid(), skip)(torch.ones(1, 1, dtype=torch.float64))
    loss = w2(h2).square().sum()
    loss.backward()
    assert h2.item() == pytest.approx(1.406096, abs=1e-6)
    assert loss.item() == pytest.approx(1.977106, abs=1e-6)
    slopes = [layer.weight.grad.item() for layer in (w0, w1, w2)]  # type: ignore[union-attr]
    assert slopes == pytest.approx([0.674198, 0.450981, 3.954213], abs=1e-6)


@pytest.mark.parametrize(
    "net",
    [
        Residual(dense_branch(3, 5, norm="layer"), "auto"),
        Residual(dense_branch(3, 3), nn.Linear(3, 3), "depth", depth=4),
    ],
)
def test_files(net: Residual) -> None:
    x = rows(4, 3).float()
    again = loads(dumps(net))
    assert torch.equal(again(x), net(x)) and set(again.state_dict()) == set(net.state_dict())
    assert len(net.state_dict()) == len({t.data_ptr() for t in net.state_dict().values()})


def test_errors() -> None:
    with pytest.raises(ValueError, match="needs depth, the number of blocks, got None"):
        block(scale="depth")
    with pytest.raises(Unsupported, match="scale 'half' is not known"):
        block(scale="half")
    with pytest.raises(Unsupported, match="shortcut 'yes' is not known; use None, 'auto'"):
        block(shortcut="yes")
    with pytest.raises(Unsupported, match="needs a branch with a layer that has weights"):
        Residual(nn.ReLU(), scale="zero")
    with pytest.raises(ValueError, match="order must be one of pre, post"):
        dense_branch(3, 3, order="in")
    assert math.isclose(block(scale=0.5).factor, 0.5)


def test_joined_channels_of_a_zero_branch() -> None:
    x = rows(4, 3)
    assert torch.equal(block(scale="zero", merge="concat")(x), torch.cat([x, 0 * x], 1))
    with pytest.raises(ValueError, match="merge is one of add, concat"):
        block(merge="mean")


def test_paths_and_their_lengths() -> None:
    paths = unravel(nn.Sequential(*(block(seed=k) for k in range(4))))
    lengths = [path.length for path in paths]
    assert len(paths) == 16 and [lengths.count(n) for n in range(5)] == [1, 4, 6, 4, 1]
    with pytest.raises(Unsupported, match="1 to 16 residual blocks, the network has 0"):
        unravel(nn.Linear(2, 2))


def test_a_dropped_branch_leaves_the_skip() -> None:
    net, x = block(drop_path=0.5), rows(4000, 3)
    torch.manual_seed(0)
    with torch.no_grad():
        out = net.train()(x)
        dropped = (out == x).all(1)
        assert 0.45 < float(dropped.double().mean()) < 0.55
        assert torch.allclose(out[~dropped], (x + 2 * net.branch(x))[~dropped])
        assert torch.equal(net.eval()(x), x + net.branch(x))
    with pytest.raises(ValueError, match="drop_path is a probability"):
        block(drop_path=1.0)


def test_convolution_blocks_project_by_one_by_one() -> None:
    x = torch.randn(2, 4, 9, 9, generator=torch.Generator().manual_seed(0))
    same = PreActBlock(4, zero_init=True).eval()
    assert same.project is None and torch.equal(same(x), x)
    wide = PreActBlock(4, 6, stride=2, zero_init=True).eval()
    assert isinstance(wide.project, nn.Conv2d) and wide.project.kernel_size == (1, 1)
    assert torch.equal(wide(x), wide.project(x)) and wide(x).shape == (2, 6, 5, 5)
    # the order norm, ReLU, convolution, twice
    kinds = [type(m).__name__ for m in PreActBlock(4).branch]
    assert kinds == ["BatchNorm2d", "ReLU", "Conv2d"] * 2


def test_files_with_the_earlier_name_of_the_shortcut() -> None:
    branch = dense_branch(3, 3)
    config = Residual.upgrade_config({"branch": branch, "project": None, "scale": 1, "depth": None})
    assert Residual(**config).branch is branch
