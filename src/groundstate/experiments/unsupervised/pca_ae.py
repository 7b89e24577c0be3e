r"""PCA recovers a plane, an autoencoder a curve."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils import skip_init

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.models.factors.pca import PCA

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def net(d: int, l: int, generator: torch.Generator) -> nn.Sequential:
    """d → 32 → l → 32 → d with tanh, in double precision."""
    layers: list[nn.Module] = []
    for a, b, last in ((d, 32, False), (32, l, True), (l, 32, False), (32, d, True)):
        linear = skip_init(nn.Linear, a, b, dtype=torch.float64)  # no draw of torch's own
        with torch.no_grad():
            draw = torch.randn(b, a, generator=generator, dtype=torch.float64)
            linear.weight.copy_(draw / a**0.5)
            linear.bias.copy_(0.5 * torch.randn(b, generator=generator, dtype=torch.float64))
        layers += [linear] if last else [linear, nn.Tanh()]
    return nn.Sequential(*layers)


def trained(X: Any, l: int, generator: torch.Generator, starts: int) -> tuple[nn.Sequential, float]:
    """The best of some starts, each lowered by L-BFGS, and its mean squared error."""
    x = torch.from_numpy(X)
    best: tuple[float, nn.Sequential] | None = None
    for _ in range(starts):
        model = net(X.shape[1], l, generator)
        search = torch.optim.LBFGS(
            model.parameters(), max_iter=400, history_size=20, line_search_fn="strong_wolfe"
        )

        def closure(model: Any = model, search: Any = search) -> Any:
            search.zero_grad()
            loss = (model(x) - x).square().mean()
            loss.backward()
            return loss

        search.step(closure)
        with torch.no_grad():
            loss = float((model(x) - x).square().mean())
        if best is None or loss < best[0]:
            best = loss, model
    assert best is not None
    return best[1], best[0]


def parabola(rng: Any, n: int) -> Any:
    t = rng.uniform(-1.5, 1.5, n)
    return np.column_stack([t, t**2]) + 0.05 * rng.normal(size=(n, 2))


def sheet(rng: Any, n: int) -> Any:
    t, h = rng.uniform(-1.5, 1.5, n), rng.uniform(-1, 1, n)
    return np.column_stack([t, h, t**2]) + 0.05 * rng.normal(size=(n, 3))


@experiment(
    "UNSX-pca-ae",
    theme="unsupervised",
    title="PCA recovers a plane, an autoencoder a curve",
    slow=True,
)
def pca_ae(seed: int = 0, *, quick: bool = False) -> Result:
    r"""What PCA gives back from p codes, :math:`WW^\top(x - b) + b`, lies in a plane of p dimensions; what
    an autoencoder gives back, :math:`f(g(x))`, can bend. On a parabola with one code and on a bent sheet
    with two, the error of PCA is the variance off the plane, that of a small network near the noise. Scores
    of PCA are uncorrelated, codes of the network need not be.

    300 rows to learn from, 1,000 to judge; a network of 32 tanh units on both sides, L-BFGS, best of three
    starts.
    """
    key = Key.of(seed)
    rng = key.fold("rows").numpy()
    generator = key.fold("net").torch(torch.device("cpu"))
    claims, numbers, seconds, shown = [], {}, {}, []
    for name, make, l in (("parabola", parabola, 1), ("sheet", sheet, 2)):
        X, test = make(rng, 300), make(rng, 1000)
        start = perf_counter()
        pca = PCA(l).fit(X)
        seconds[f"PCA, {name}"] = perf_counter() - start
        start = perf_counter()
        ae, loss = trained(X, l, generator, 3)
        seconds[f"network, {name}"] = perf_counter() - start
        flat = pca.inverse_transform(pca.transform(test))
        with torch.no_grad():
            bent = ae(torch.from_numpy(test)).numpy()
            codes = ae[:3](torch.from_numpy(test)).numpy()
        off_plane, off_curve = (
            float(((flat - test) ** 2).mean()),
            float(((bent - test) ** 2).mean()),
        )
        rank = int(np.linalg.matrix_rank(flat - flat.mean(0), tol=1e-8))
        claims += [
            Claim.equal(f"{name}: dimensions of what PCA gives back", rank, l),
            Claim.below(f"{name}: error of the network on new rows", off_curve, 0.01),
            Claim.above(
                f"{name}: error of PCA over that of the network", off_plane / off_curve, 5.0
            ),
        ]
        numbers[name] = {"PCA": off_plane, "network": off_curve, "network, training rows": loss}
        shown.append((name, test, flat, bent))
        if l == 2:
            scores = np.corrcoef(pca.transform(X).T)[0, 1]
            between = float(abs(np.corrcoef(codes.T)[0, 1]))
            claims.append(
                Claim.below("sheet: correlation of PCA's scores", abs(float(scores)), 1e-10)
            )
            claims.append(Claim.above("sheet: correlation of the network's codes", between, 1e-3))

    def draw(figure: Figure) -> None:
        for ax, (name, test, flat, bent) in zip(figure.subplots(1, 2), shown):
            last = test.shape[1] - 1
            ax.scatter(test[:, 0], test[:, last], s=3, color="lightgrey", label="rows")
            ax.scatter(flat[:, 0], flat[:, last], s=3, color=COLOURS[1], label="PCA")
            ax.scatter(bent[:, 0], bent[:, last], s=3, color=COLOURS[0], label="network")
            ax.set(title=f"{name}: what comes back")
            ax.legend(markerscale=3)

    return Result(claims, numbers, draw, seconds, size=(8.5, 3.3))
