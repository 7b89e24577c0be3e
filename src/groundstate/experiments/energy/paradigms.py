r"""One energy, many tasks: what is free decides whether it is classified, clustered or learned."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy import CentroidEnergy, Energy, LinearEnergy, LinearGaussianEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.tools import blobs
from groundstate.infer import Coordinate, Gradient, minimise, posterior
from groundstate.learn import EM, L2, Naive, ParameterEnergy, SoftMin, fit

CENTRES = [[-2.0, 0.0, 1.0], [2.0, 1.0, 0.0], [0.0, -2.0, -1.0]]


@experiment("ENE-X-paradigms", theme="energy", title="One energy, many tasks")
def paradigms(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`\min_{\text{free}} e(x, y, z; \theta)`: what is minimised names the task.

    Free finite y classifies, free finite z clusters, free real z encodes, free x synthesises, free
    θ learns, and all of them are one call of ``minimise`` whose energy trace never rises. The
    answers are those of multinomial logistic regression, k-means and ridge regression.
    """
    key = Key.of(seed)
    x, y = blobs(key.fold("data"), CENTRES, 1.0, 300)
    traces: dict[str, Tensor] = {}
    numbers: dict[str, float] = {}

    # θ: learning a linear energy is minimising over its parameters
    linear = LinearEnergy(3, 3).double()
    parameters = ParameterEnergy(linear, SoftMin(), {"x": x, "y": y}, L2(1.0))
    learned = minimise(
        parameters, "theta", init={"theta": parameters.theta}, method=Gradient(max_iter=500)
    )
    parameters.assign(learned["theta"][0])
    traces["θ  learn"] = _trace(learned.trace)

    # y: classification
    found = minimise(linear, "y", {"x": x})
    labels, probabilities = _softmax_regression(x, y)
    numbers["labels that differ from softmax regression"] = _differ(found["y"], labels)
    with torch.no_grad():
        p = posterior(linear, "y", {"x": x}).probs  # type: ignore[attr-defined]
    numbers["largest gap of a class probability"] = float((p - probabilities).abs().max())

    # z finite: clustering, with the centroids learned by hard EM from the first rows
    centroid = CentroidEnergy(3, 3).double()
    with torch.no_grad():
        centroid.mu.copy_(x[:3])
    history = fit(centroid, {"x": x}, Naive(latent="minimise"), EM(T=0.0, tol=1e-12))
    traces["θ, z  cluster"] = -torch.tensor(history.extra["log_likelihood"], dtype=x.dtype)[:, None]
    clusters = minimise(centroid, "z", {"x": x})["z"]
    numbers["labels that differ from k-means"] = _differ(clusters, _kmeans(x))

    # z real: representation
    code = LinearGaussianEnergy(3, 2, s=2.0, generator=key.fold("code").torch()).double()
    with torch.no_grad():
        code.b.copy_(x.mean(0))
    encoded = minimise(code, "z", {"x": x})
    searched = minimise(code, "z", {"x": x}, method=Gradient(tol=1e-10))
    traces["z  encode"] = _trace(searched.trace)
    numbers["largest gap to a ridge code"] = float((encoded["z"] - _ridge(code, x)).abs().max())
    numbers["largest gap of searched and exact codes"] = float(
        (encoded["z"] - searched["z"]).abs().max()
    )

    # x: synthesis, for a wanted cluster and for any; then x and z together
    start = {"x": torch.zeros(3, 3, dtype=x.dtype)}
    wanted = {"z": torch.arange(3)}
    made = minimise(centroid, "x", wanted, method=Gradient(), init=start)
    traces["x  synthesise"] = _trace(made.trace)
    numbers["largest gap of a synthesised x to its centroid"] = float(
        (made["x"] - centroid.mu).detach().abs().max()
    )
    both = minimise(centroid, ("x", "z"), method=Coordinate(), init={"x": x[:1], "z": y[:1]})
    traces["x, z  synthesise"] = _trace(both.trace)

    rise = max(float(trace.diff(dim=0).max()) for trace in traces.values())
    claims = [
        Claim.at_most("largest rise of an energy trace", rise, 0.0),
        *(Claim.equal(f"free y, {n}", numbers[n], 0.0) for n in list(numbers)[:1]),
        Claim.at_most(
            "free y, probabilities: gap to softmax regression",
            numbers["largest gap of a class probability"],
            1e-4,
        ),
        Claim.equal("free z, labels that differ from k-means",
                    numbers["labels that differ from k-means"], 0.0),
        Claim.at_most("free z, codes: gap to ridge regression",
                      numbers["largest gap to a ridge code"], 1e-10),
        Claim.at_most("free z, search: gap to the closed form",
                      # a search that compares energies resolves z to about √(ε e / curvature)
                      numbers["largest gap of searched and exact codes"], 1e-7),
        Claim.at_most("free x: gap to the centroid",
                      numbers["largest gap of a synthesised x to its centroid"], 1e-6),
    ]  # fmt: skip
    energies: list[Energy] = [linear, centroid, code]

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.5))
        for (name, rows), colour in zip(traces.items(), COLOURS):
            trace = rows.mean(1)
            scaled = (trace - trace[-1]) / max(float(trace[0] - trace[-1]), 1e-12)
            left.plot(
                torch.linspace(0, 1, len(trace)).numpy(),
                scaled.numpy(), marker=".", color=colour, label=name,
            )  # fmt: skip
        left.set(title="energy above its end, from 1 to 0", xlabel="share of the run")
        left.legend(title="free")
        _table(right, energies)

    return Result(claims, {**numbers, "rise": rise}, draw, size=(10.0, 3.8))


def _trace(trace: Tensor | None) -> Tensor:
    """The recorded energy of every row, ``(steps, B)``."""
    assert trace is not None
    return trace


def _differ(ours: Tensor, theirs: np.ndarray) -> float:
    return float((ours.numpy() != theirs).sum())


def _softmax_regression(x: Tensor, y: Tensor) -> tuple[np.ndarray, Tensor]:
    from sklearn.linear_model import LogisticRegression

    peer = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(x.numpy(), y.numpy())
    return peer.predict(x.numpy()), torch.from_numpy(peer.predict_proba(x.numpy()))


def _kmeans(x: Tensor) -> np.ndarray:
    from sklearn.cluster import KMeans

    peer = KMeans(3, init=x[:3].numpy(), n_init=1, tol=0.0, max_iter=1000).fit(x.numpy())
    labels: np.ndarray = peer.labels_
    return labels


def _ridge(code: LinearGaussianEnergy, x: Tensor) -> Tensor:
    from sklearn.linear_model import Ridge

    peer = Ridge(alpha=1 / code.s**2, fit_intercept=False, solver="cholesky")
    peer.fit(code.W.detach().numpy(), (x - code.b.detach()).T.numpy())
    return torch.from_numpy(peer.coef_)


def _table(ax, energies: list[Energy]) -> None:  # type: ignore[no-untyped-def]
    """The paradigm table: what each energy can do with each variable when it is free."""
    kinds = ("table", "argmin", "conditional", "log_partition", "stats")
    cells, labels = [], []
    for energy in energies:
        able = {(row.kind, row.variables) for row in energy.capabilities()}
        for name, space in energy.spaces.items():
            labels.append(f"{type(energy).__name__}\nfree {name} ∈ {space!r}")
            own = {kind for kind, names in able if names in ((name,), ())}
            cells.append([float(kind in own) for kind in kinds])
    ax.imshow(cells, cmap="Blues", vmin=0, vmax=1.6, aspect="auto")
    ax.set_xticks(range(len(kinds)), kinds)
    ax.set_yticks(range(len(labels)), labels, fontsize=7)
    ax.set_title("what each energy offers for its free variable")
