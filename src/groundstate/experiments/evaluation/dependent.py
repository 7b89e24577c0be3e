r"""Couples are not independent people."""

from __future__ import annotations

import numpy as np

from groundstate.compute.random import Key
from groundstate.evaluate import cross_validate
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.math.stats import mean_interval, proportion_interval, ttest
from groundstate.models.neighbors.k_neighbors_regressor import KNeighborsRegressor

COUPLES, RHO = 100, 0.5


@experiment("EVA-X-dependent", theme="evaluation", title="Couples are not independent people")
def dependent(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Rows that come in groups of m with correlation ρ inform less: the variance of their mean is
    :math:`1 + (m-1)\rho` times that of independent rows. Taken as independent, the 95 % interval of
    the mean height of couples (ρ = ½) holds 89 % and the t-test rejects a true mean twice too often;
    by clusters it holds 95 %. And a model that has seen a person in training knows that person in
    testing: folds must not cut people.

    100 couples, 4,000 repeats; nearest neighbours on 60 persons with 5 visits each.
    """
    repeats = 1000 if quick else 4000
    key = Key.of(seed)
    rng = key.fold("heights").numpy()
    shared = rng.standard_normal((repeats, COUPLES, 1))
    own = rng.standard_normal((repeats, COUPLES, 2))
    heights = (np.sqrt(RHO) * shared + np.sqrt(1 - RHO) * own).reshape(repeats, -1)
    couple = np.repeat(np.arange(COUPLES), 2)
    held, rejected = np.zeros((repeats, 2)), 0
    for i, row in enumerate(heights):
        for j, found in enumerate((mean_interval(row), mean_interval(row, cluster=couple))):
            held[i, j] = found.low <= 0 <= found.high
    for row in heights[: repeats // 4]:
        rejected += ttest(row).pvalue < 0.05
    naive, cluster = held.mean(0).tolist()
    factor = float(heights.mean(1).var() * 2 * COUPLES)
    type_one = rejected / (repeats // 4)

    rng = key.fold("visits").numpy()
    person = np.repeat(np.arange(60), 5)
    X = rng.standard_normal((60, 3))[person] + 0.1 * rng.standard_normal((300, 3))
    y = rng.standard_normal(60)[person] + 0.3 * rng.standard_normal(300)
    model = KNeighborsRegressor(n_neighbors=3)
    errors = {}
    for name, groups in (("rows", None), ("persons", person)):
        judged = cross_validate(model, X, y, groups=groups, scoring="neg_mean_squared_error")
        errors[name] = -float(judged.scores.mean)
    claims = [
        Claim.close("naive 95 % interval: coverage", naive, 0.89, tol=0.015),
        Claim.between("cluster interval: coverage", cluster, 0.94, 0.96),
        Claim.close("variance of the mean over the independent one", factor, 1 + RHO, tol=0.12),
        Claim.above("t-test of a true mean: share rejected at 5 %", type_one, 0.08),
        Claim.above(
            "error with folds of persons over folds of rows",
            errors["persons"] / errors["rows"],
            1.0,
        ),
    ]
    numbers = {
        "naive": naive,
        "cluster": cluster,
        "variance factor": factor,
        "t-test rejects": type_one,
        "fold errors": errors,
    }

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for i, share in enumerate((naive, cluster)):
            bar = proportion_interval(share * repeats, repeats)
            left.bar(i, share, color=COLOURS[i])
            left.errorbar(
                i, share, [[share - bar.low], [bar.high - share]], color="black", capsize=4
            )
        left.set_xticks([0, 1], ["naive", "by couples"])
        left.axhline(0.95, color="black", linestyle=":")
        left.set(ylim=(0.8, 1), ylabel="coverage of the 95 % interval")
        right.bar(list(errors), list(errors.values()), color=COLOURS[2:4])
        right.set(ylabel="squared error", title="nearest neighbours, folds of")

    return Result(claims, numbers, draw)
