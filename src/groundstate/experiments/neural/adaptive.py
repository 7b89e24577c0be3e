r"""Per-parameter rates: Adagrad suits rare features but dies, RMSprop and Adam do not."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.networks.network import NetworkClassEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn import Regret, SoftMin, Stochastic, fit, learn_population
from groundstate.learn.train import reference_numpy as reference_optim
from groundstate.nn import MLP

D, T = 200, 5000
RATES = {
    "sgd": np.geomspace(0.05, 0.5, 5),
    "adagrad": np.geomspace(0.2, 1.0, 5),
    "rmsprop": np.geomspace(0.005, 0.03, 5),
    "adam": np.geomspace(0.005, 0.03, 5),
}
RULES = {"sgd": "gd", "adagrad": "adagrad", "rmsprop": "rmsprop", "adam": "adam"}


def stream(key: Key) -> dict[str, Tensor]:
    """Rows in which feature k is 1 with probability 1/k, else 0; labels of weights from N(0, 4)."""
    rng = key.numpy()
    x = rng.random((T, D)) < 1 / np.arange(1, D + 1)
    p = 1 / (1 + np.exp(-(x @ (2 * rng.standard_normal(D)))))
    y = rng.random(T) < p
    return {"x": torch.from_numpy(x).float(), "y": torch.from_numpy(y).long()}


def linear(generator: torch.Generator | None = None) -> NetworkClassEnergy:
    return NetworkClassEnergy(D, 2, MLP(D, (), 1, generator=generator))


def paths(x: Tensor, y: Tensor, rule: str, factor: float = 1.0, column: float = 1.0) -> Tensor:
    r"""Scores of all rows along 200 full steps on ``factor`` · loss, the first feature scaled."""
    X = x.double().numpy().copy()
    X[:, 0] *= column
    t = y.double().numpy()

    def grad(w: np.ndarray) -> np.ndarray:
        slope: np.ndarray = factor * X.T @ (1 / (1 + np.exp(-X @ w)) - t) / len(X)
        return slope

    way = reference_optim.run(RULES[rule], grad, np.zeros(X.shape[1]), 200, lr=0.01, **(
        {"eps": 1e-12} if rule != "sgd" else {}))  # fmt: skip
    return torch.from_numpy(way @ X.T)  # (201, N)


@experiment(
    "NEU-X-adaptive", theme="neural", title="Rates of their own for rare features", slow=True
)
def adaptive(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Adagrad divides by :math:`\sqrt{\sum_{s\le t}g_s^2}`: a rare feature keeps a large rate, but under a
    constant gradient every rate falls as :math:`t^{-1/2}`. RMSprop and Adam divide by a moving average,
    whose rate stays. All three cancel a factor on the loss, which multiplies the step of SGD; scaling a
    feature is something else and changes the way of all. On convex losses the regret
    :math:`R_T = \sum_t[f_t(\theta_{t-1}) - f_t(\theta^*)]` grows about as :math:`\sqrt T`.

    A logistic stream of 5,000 rows, 200 features with frequencies 1/k, one row a step; each rule with
    the best of five rates; loss of a row before its step. Regret against the best fixed θ.
    Quick runs try the three in the middle.
    """
    key = Key.of(seed)
    data = stream(key.fold("stream"))
    online: dict[str, float] = {}
    best: dict[str, float] = {}
    for rule, rates in RATES.items():
        found = learn_population(
            linear, {"lr": (rates[1:4] if quick else rates).tolist()}, data, SoftMin(),
            optimizer=rule, epochs=1, batch_size=1,
            seed=key.fold("order"),
        )  # fmt: skip
        online[rule], best[rule] = found.best().score, float(found.best().settings["lr"])

    regret: dict[str, Regret] = {}
    for rule in ("adagrad", "adam"):
        regret[rule] = Regret()
        solver = Stochastic(rule, lr=best[rule], batch_size=1, max_epochs=1, tol=None)
        fit(linear(), data, SoftMin(), solver, callbacks=[regret[rule]],
            random_state=key.fold("order"))  # fmt: skip
    slopes = {rule: seen.slope() for rule, seen in regret.items()}

    still = {rule: -np.diff(reference_optim.run(RULES[rule], lambda x: np.ones_like(x), 0.0, 1000,
                                                lr=0.1)) for rule in RATES}  # fmt: skip
    t = np.arange(1, 1001)
    decay = {rule: float(np.polyfit(np.log(t[99:]), np.log(s[99:]), 1)[0])
             for rule, s in still.items()}  # fmt: skip

    x, y = data["x"][:500, :20], data["y"][:500]
    plain = {rule: paths(x, y, rule) for rule in RATES}
    loud = {
        rule: float((paths(x, y, rule, factor=100.0) - plain[rule]).abs().max()) for rule in RATES
    }
    scaled = {rule: float((paths(x, y, rule, column=10.0) - plain[rule]).abs().max())
              for rule in RATES}  # fmt: skip
    own = ("adagrad", "rmsprop", "adam")
    claims = [
        Claim.below("online loss, Adagrad against Adam", online["adagrad"], online["adam"]),
        Claim.below("online loss, Adam against SGD", online["adam"], online["sgd"]),
        Claim.close("constant gradient: Adagrad's rate as a power of t", decay["adagrad"], -0.5,
                    tol=0.01),
        Claim.close("constant gradient: Adam's rate as a power of t", decay["adam"], 0, tol=0.01),
        *[Claim.between(f"slope of log regret, {rule}", slopes[rule], 0.4, 0.65) for rule in slopes],
        *[Claim.at_most(f"loss × 100: change of the path, {r}", loud[r], 1e-6) for r in own],
        Claim.above("loss × 100: change of the path, SGD", loud["sgd"], 0.1),
        *[Claim.above(f"a feature × 10: change of the path, {r}", scaled[r], 0.1) for r in own],
    ]  # fmt: skip
    numbers = {"online loss": online, "rates": best, "regret slopes": slopes, "decay": decay,
               "loss times 100": loud, "feature times 10": scaled}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        left.bar(list(online), list(online.values()), color=COLOURS[: len(online)])
        left.set(title="online loss, best rate", ylim=(0.9 * min(online.values()), None))
        for (rule, steps), colour in zip(still.items(), COLOURS):
            middle.loglog(t, steps, color=colour, label=rule)
        middle.set(title="step under a constant gradient", xlabel="t")
        for rule, seen in regret.items():
            colour = COLOURS[list(RATES).index(rule)]
            values = seen.values.clamp_min(1e-1)
            right.loglog(range(1, T + 1), values, color=colour, label=f"{rule}: {slopes[rule]:.2f}")
        right.set(title="regret, with its slope", xlabel="t")
        for ax in (middle, right):
            ax.legend()

    return Result(claims, numbers, draw, size=(11.0, 3.4))
