r"""Centre and whiten what goes into a layer; layer norm may erase what tells classes apart."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from groundstate.compute.random import Key
from groundstate.energy import NetClassEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.neural.condition import F64, descend
from groundstate.experiments.neural.digits import share_right
from groundstate.learn import NLL, Stochastic, fit
from groundstate.math.optim.conditioning import hessian_condition, least_squares_hessian
from groundstate.nn import MLP, Center, Whiten, norm

OFFSET = np.array([5.0, 0.0, -2.0])
MIX = np.array([[1.0, 0.6, 0.0], [0.0, 0.8, 0.3], [0.0, 0.0, 0.5]])
LAYERS = {"raw": None, "centred": Center, "whitened": Whiten}
SMALL, LARGE = (0.9, 0.0), (2.0, 0.0)


def one_step(X: F64, y: F64) -> float:
    """Share of the gap that is left after one step of descent at rate 1."""
    H = least_squares_hessian(X)
    rows = np.column_stack([np.ones(len(X)), X])
    best = np.linalg.solve(H, rows.T @ y / len(X))
    away = -best + H @ best
    return float((away @ H @ away) / (best @ H @ best))


def norm_classes(key: Key, epochs: int) -> tuple[dict[str, float], float]:
    """Accuracy behind each norm on rows about two places of one ray, and the larger class."""
    rng = key.numpy()
    y = (rng.random(400) < 0.4).astype(np.int64)
    length = rng.uniform(0.9, 1.1, (400, 1))  # apart along their ray
    x = (length * np.where(y[:, None] == 1, LARGE, SMALL)).astype(np.float32)
    data = {"x": torch.from_numpy(x), "y": torch.from_numpy(y)}
    right = {}
    for kind in ("batch", "layer"):
        net = nn.Sequential(
            norm(kind, 2, eps=1e-12), MLP(2, (16,), 2, generator=key.fold("net").torch())
        )
        energy = NetClassEnergy(2, 2, net)
        solver = Stochastic(lr=0.02, batch_size=100, max_epochs=epochs, tol=None)
        fit(energy, data, NLL(), solver, random_state=key.fold("order"))
        right[kind] = share_right(energy, data)
    return right, float(max(y.mean(), 1 - y.mean()))


@experiment(
    "ARC-x-condition",
    theme="architectures",
    title="Centre and whiten, and mind layer norm",
    slow=True,
)
def condition(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A linear layer with squared loss has the Hessian
    :math:`H = \begin{pmatrix}X^\top X/N & \bar x\\ \bar x^\top & 1\end{pmatrix}`; an offset of the
    inputs couples weights and bias and stretches its valley. Centring removes the coupling, whitening
    makes :math:`H = I`, and descent at rate 1 arrives in one step. Layer norm takes the statistics of a
    row instead: of two inputs it keeps the sign of their difference, so that :math:`(.9, 0)` and
    :math:`(2, 0)` both become :math:`(1, -1)`.

    500 rows of three correlated inputs around (5, 0, −2); steps of size 1/L until a millionth of the
    gap is left; 400 rows of two classes about (.9, 0) and (2, 0), up to a tenth
    longer or shorter.
    """
    key = Key.of(seed)
    rng = key.fold("rows").numpy()
    X = rng.standard_normal((500, 3)) @ MIX.T + OFFSET
    y = X @ np.array([1.0, -2.0, 0.5]) + 1 + 0.1 * rng.standard_normal(500)
    rows, kappa, gaps = {}, {}, {}
    for name, layer in LAYERS.items():
        made = torch.from_numpy(X)
        rows[name] = X if layer is None else layer(3).double().fit(made)(made).numpy()
        kappa[name], gaps[name] = hessian_condition(rows[name]), descend(rows[name], y)
    steps = {name: len(gap) - 1 for name, gap in gaps.items()}
    left = one_step(rows["whitened"], y)
    points = torch.tensor([SMALL, LARGE])
    after = norm("layer", 2, eps=1e-12)(points).detach()
    right, larger = norm_classes(key.fold("classes"), 10 if quick else 30)
    claims = [
        Claim.above("κ raw over κ centred", kappa["raw"] / kappa["centred"], 10),
        Claim.above("κ centred", kappa["centred"], 2),
        Claim.close("κ whitened", kappa["whitened"], 1, tol=1e-9),
        Claim.at_most("gap left after one step at rate 1, whitened", left, 1e-12),
        Claim.equal("names by steps are names by κ",
                    sorted(steps, key=steps.__getitem__), sorted(kappa, key=kappa.__getitem__)),
        Claim.above("steps raw over steps centred", steps["raw"] / steps["centred"], 5),
        Claim.equal("steps whitened", steps["whitened"], 1),
        Claim.close("layer norm of (.9, 0) and (2, 0) less (1, −1)",
                    float((after - torch.tensor([1.0, -1.0])).abs().max()), 0, tol=1e-6),
        Claim.close("layer norm: accuracy less the larger class", right["layer"] - larger, 0,
                    tol=1e-9),
        Claim.equal("batch norm: accuracy", right["batch"], 1.0),
    ]  # fmt: skip
    numbers = {"condition": kappa, "steps": steps, "accuracy": right, "larger class": larger}

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 4)
        for ax, name in zip(axes, LAYERS, strict=False):
            _valley(ax, rows[name], y)
            ax.set(title=f"{name}: κ = {kappa[name]:,.4g}", xlabel="weight − best")
        axes[0].set_ylabel("bias − best")
        axes[3].barh(list(LAYERS)[::-1], [steps[n] for n in list(LAYERS)[::-1]], color=COLOURS[0])
        axes[3].set(
            xscale="log", xlabel="steps", xlim=(0.7, None), title="to a millionth of the gap"
        )

    return Result(claims, numbers, draw, size=(11.0, 2.9))


def _valley(ax: object, X: F64, y: F64) -> None:
    """Loss over the first weight and the bias, the others at their best, and the way of descent."""
    H = least_squares_hessian(X)[:2, :2]  # of (bias, first weight)
    side = np.linspace(-2, 2, 81)
    w, b = np.meshgrid(side, side)
    J = 0.5 * (H[0, 0] * b**2 + 2 * H[0, 1] * w * b + H[1, 1] * w**2)
    at, way = np.array([1.5, 1.0]), []
    for _ in range(60):
        way.append(at)
        at = at - H @ at / np.linalg.eigvalsh(H)[-1]
    path = np.array(way)
    ax.contour(w, b, J, levels=np.geomspace(0.02, 30, 9), colors="#9ca3af", linewidths=0.8)  # type: ignore[attr-defined]
    ax.plot(path[:, 1], path[:, 0], "o-", color=COLOURS[1], markersize=2.5, linewidth=1)  # type: ignore[attr-defined]
    ax.set(xlim=(-2, 2), ylim=(-2, 2), aspect="equal")  # type: ignore[attr-defined]
