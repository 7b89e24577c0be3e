"""Normalisation: the axes of each kind, population statistics, input whitening."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from groundstate.errors import DataError, ShapeError, Unsupported
from groundstate.nn import Center, Standardize, Whiten, norm, refit_norm
from groundstate.store import dumps, loads

CUBE = torch.arange(16, dtype=torch.float64).reshape(2, 2, 2, 2)


def plain(kind: str, x: Tensor, **options: int) -> Tensor:
    layer = norm(kind, x.shape[1], x.ndim - 2, **options).double()  # type: ignore[arg-type]
    return layer(x).detach()


def test_batch_norm_values() -> None:
    x = torch.tensor([[1.0], [2.0], [3.0], [4.0]], dtype=torch.float64)
    expected = [-1.341641, -0.447214, 0.447214, 1.341641]
    assert plain("batch", x).flatten().tolist() == pytest.approx(expected, abs=1e-5)
    two = torch.tensor([[1.0, 10.0], [3.0, 30.0]], dtype=torch.float64)
    assert torch.allclose(plain("batch", two), two.new_tensor([[-1, -1], [1, 1]]), atol=1e-5)
    exact = norm("batch", 1, eps=1e-30).double()(x).flatten().tolist()
    assert exact == pytest.approx(expected, abs=1e-6)


def test_the_axes_of_each_kind() -> None:
    def undone(out: Tensor, axes: tuple[int, ...]) -> tuple[list[float], list[float]]:
        """Means and variances over axes that turn CUBE into out."""
        mean, var = CUBE.mean(axes, keepdim=True), CUBE.var(axes, keepdim=True, correction=0)
        assert torch.allclose(out, (CUBE - mean) / (var + 1e-5).sqrt(), atol=1e-12)
        return mean.flatten().tolist(), var.flatten().tolist()

    means, variances = undone(plain("batch", CUBE), (0, 2, 3))
    assert means == [5.5, 9.5] and variances == pytest.approx([17.25, 17.25])
    assert undone(plain("layer", CUBE), (1, 2, 3)) == ([3.5, 11.5], [5.25, 5.25])
    assert undone(plain("instance", CUBE), (2, 3)) == ([1.5, 5.5, 9.5, 13.5], [1.25] * 4)
    assert torch.allclose(plain("group", CUBE, groups=1), plain("layer", CUBE))
    assert torch.allclose(plain("group", CUBE, groups=2), plain("instance", CUBE))


def test_layer_norm_values() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64)
    assert plain("layer", x)[0].tolist() == pytest.approx([-1.224745, 0, 1.224745], abs=2e-5)
    both = torch.tensor([[0.9, 0.0], [2.0, 0.0]], dtype=torch.float64)
    assert torch.allclose(plain("layer", both), both.new_tensor([[1.0, -1.0]] * 2), atol=1e-4)
    A = torch.randn(5, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert torch.allclose(plain("layer", A), plain("batch", A.T).T, atol=1e-12)
    assert torch.allclose(plain("layer", 1000 * A), plain("layer", 7000 * A + 3), atol=1e-8)


def test_output_variance_and_invariance() -> None:
    x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 1e-2
    var = x.var(0, correction=0)
    assert torch.allclose(plain("batch", x).var(0, correction=0), var / (var + 1e-5), rtol=1e-9)
    big = 100 * x
    assert torch.allclose(plain("batch", big), plain("batch", 7 * big + 3), atol=1e-4)


def test_running_estimates_take_the_unbiased_variance() -> None:
    layer = nn.BatchNorm1d(1).double()
    layer(torch.tensor([[1.0], [2.0], [3.0], [4.0]], dtype=torch.float64))
    assert layer.running_mean.item() == pytest.approx(0.1 * 2.5)
    assert layer.running_var.item() == pytest.approx(0.9 + 0.1 * 5 / 3)


def test_one_value_per_channel_cannot_be_normalised() -> None:
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        norm("batch", 3)(torch.zeros(1, 3))


def network() -> nn.Sequential:
    g = torch.Generator().manual_seed(0)
    net = nn.Sequential(
        nn.Conv1d(2, 4, 3), norm("batch", 4, 1), nn.ReLU(), nn.Flatten(), nn.Linear(16, 5),
        norm("batch", 5), nn.Tanh(),
    ).double()  # fmt: skip
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.randn(p.shape, generator=g, dtype=p.dtype))
    return net


@pytest.mark.parametrize("sizes", [[60], [7, 20, 33], [1, 59]])
def test_refit_is_exact_whatever_the_batches(sizes: list[int]) -> None:
    net = network().train()
    x = torch.randn(60, 2, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    refit_norm(net, ((part, "label") for part in x.split(sizes)))  # read once, kept for the layers
    assert net.training
    net.eval()
    with torch.no_grad():
        a = net[0](x)
        assert torch.allclose(net[1].running_mean, a.mean((0, 2)), atol=1e-12)
        assert torch.allclose(net[1].running_var, a.var((0, 2)), rtol=1e-12)
        b = net[:5](x)  # through the first layer as it now is
        assert torch.allclose(net[5].running_mean, b.mean(0), atol=1e-12)
        assert torch.allclose(net[5].running_var, b.var(0), rtol=1e-12)


def test_evaluation_does_not_see_batch_mates() -> None:
    net = refit_norm(network(), torch.randn(30, 2, 6, dtype=torch.float64,
                                            generator=torch.Generator().manual_seed(2))).eval()  # fmt: skip
    x = torch.randn(8, 2, 6, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    assert torch.allclose(net(x)[:1], net(x[:1]), atol=1e-12)


def test_norm_errors() -> None:
    with pytest.raises(Unsupported, match="norm 'bach' is not known; use one of batch, layer"):
        norm("bach", 3)
    with pytest.raises(Unsupported, match="instance norm of rows"):
        norm("instance", 3)
    with pytest.raises(ValueError, match="6 channels do not make 4 equal groups"):
        norm("group", 6, groups=4)
    with pytest.raises(ValueError, match="0 to 3, got 4"):
        norm("batch", 3, 4)
    with pytest.raises(DataError, match="at least two values per channel, got 1"):
        refit_norm(nn.BatchNorm1d(2), torch.zeros(1, 2))


def data(n: int = 300, seed: int = 0) -> Tensor:
    g = torch.Generator().manual_seed(seed)
    mix = torch.tensor([[9.0, 0.0, 0.0], [0.5, 0.8, 0.0], [0.2, 0.1, 0.3]], dtype=torch.float64)
    return torch.randn(n, 3, generator=g, dtype=torch.float64) @ mix.T + torch.tensor(
        [5.0, -2.0, 9.0]
    )


def hessian(x: Tensor) -> Tensor:
    """Of ½ mean (w·x + b − y)² in (w, b)."""
    joined = torch.cat([x, torch.ones(len(x), 1, dtype=x.dtype)], 1)
    return joined.T @ joined / len(x)


def test_each_step_improves_the_hessian() -> None:
    x = data()
    assert hessian(Center(3).double().fit(x)(x))[:3, 3].abs().max() < 1e-12
    assert torch.allclose(
        hessian(Standardize(3).double().fit(x)(x)).diagonal(), x.new_ones(4), atol=1e-12
    )
    raw, centred, scaled, white = (
        torch.linalg.cond(hessian(v)).item()
        for v in (x, *(k.double().fit(x)(x) for k in (Center(3), Standardize(3), Whiten(3))))
    )
    assert raw > centred > scaled > white and white == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("method", ["zca", "pca", "cholesky"])
def test_whitened_hessian_is_the_identity(method: str) -> None:
    x = data()
    layer = Whiten(3, method).double().fit(x)
    z = layer(x)
    assert (hessian(z) - torch.eye(4, dtype=x.dtype)).abs().max() < 1e-12
    assert torch.allclose(layer.inverse(z), x, atol=1e-10)


def test_descent_arrives_in_one_step() -> None:
    x = data()
    y = x @ torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64) + 3
    z = Whiten(3).double().fit(x)(x)
    joined = torch.cat([z, torch.ones(len(z), 1, dtype=z.dtype)], 1)
    w = torch.zeros(4, dtype=torch.float64)
    w = w - 1.0 * joined.T @ (joined @ w - y) / len(z)
    assert (joined @ w - y).abs().max() < 1e-10


def test_zca_is_the_inverse_root() -> None:
    x = data()
    C = torch.cov(x.T, correction=0)
    W = Whiten(3).double().fit(x).matrix
    assert torch.allclose(W, W.T, atol=1e-12)
    assert torch.allclose(W @ W @ C, torch.eye(3, dtype=x.dtype), atol=1e-8)


def test_pca_whitening_equals_scikit_learn() -> None:
    from sklearn.decomposition import PCA

    x = data()
    theirs = torch.from_numpy(PCA(whiten=True).fit_transform(x.numpy()))
    ours = Whiten(3, "pca").double().fit(x)(x) * math.sqrt((len(x) - 1) / len(x))
    signs = torch.sign((ours * theirs).sum(0))
    assert torch.allclose(ours * signs, theirs, atol=1e-9)


@pytest.mark.parametrize("layer", [Center(3), Standardize(3), Whiten(3)])
def test_a_weight_of_two_is_the_row_twice(layer: Center) -> None:
    x = data(20)
    weight = torch.ones(20)
    weight[:5] = 2
    a = {n: b.clone() for n, b in layer.double().fit(x, weight).named_buffers()}
    b = dict(layer.fit(torch.cat([x[:5], x])).named_buffers())
    assert all(torch.allclose(a[n], b[n], atol=1e-9) for n in a)
    again = loads(dumps(layer))
    assert torch.equal(again(x), layer(x)) and torch.allclose(layer.inverse(layer(x)), x)


def test_constant_columns_and_singular_covariances() -> None:
    x = data(20)
    flat = torch.cat([x, torch.full((20, 1), 7.0, dtype=x.dtype)], 1)
    layer = Standardize(4).double().fit(flat)
    assert layer.scale[3] == 1 and layer(flat)[:, 3].abs().max() < 1e-12
    with pytest.raises(DataError, match="has rank 3 of 4 and cannot be whitened; give eps > 0"):
        Whiten(4).fit(flat)
    assert torch.isfinite(Whiten(4, eps=1e-3).double().fit(flat)(flat)).all()


def test_whiten_errors() -> None:
    with pytest.raises(ValueError, match="method must be one of zca, pca, cholesky"):
        Whiten(3, "mahalanobis")
    with pytest.raises(ShapeError, match=r"Center has 3 features, got \(2, 4\)"):
        Center(3)(torch.zeros(2, 4))
    with pytest.raises(DataError, match="sample_weight needs 2 numbers"):
        Center(1).fit(torch.zeros(2, 1), torch.tensor([1.0, -1.0]))
