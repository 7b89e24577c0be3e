r"""The same EM with other components."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from groundstate.experiments.base import Claim, Result, experiment
from groundstate.models.mixtures.mixture_model import Columns, MixtureModel

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _fall(model: MixtureModel) -> float:
    return float(-np.diff(model.history_.extra["log_likelihood"]).min())


@experiment(
    "UNSX-families", theme="unsupervised", title="The same EM with other components", slow=True
)
def families(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Components of any family in :math:`e(x, z) = -\log\pi_z - \log p(x \mid \theta_z)`.

    Bits of digits by ten Bernoulli components, counts by Poisson ones, and columns of different
    kinds: the likelihood rises at every step, and the groups are found.
    """
    digits = load_digits()
    X, y = (digits.data >= 8).astype(float), digits.target
    settings: dict[str, Any] = {"tol": 1e-5, "max_iter": 1000, "random_state": seed}
    one = MixtureModel("bernoulli", 1).fit(X)
    ten = MixtureModel("bernoulli", 10, n_init=3, **settings).fit(X)
    nmi = float(normalized_mutual_info_score(y, ten.predict(X)))
    rng = np.random.default_rng(seed)
    z = np.repeat([0, 1], 300)
    counts = rng.poisson(np.where(z[:, None] == 0, 2.0, 8.0), (600, 2)).astype(float)
    poisson = MixtureModel("poisson", 2, **settings).fit(counts)
    mixed = np.column_stack(
        [rng.normal(3.0 * z, 1.0), rng.integers(0, 2, 600) + z, rng.poisson(1 + 3 * z)]
    )
    kinds = Columns({0: "gaussian", 1: "categorical", 2: "poisson"})
    joint = MixtureModel(kinds, 2, **settings).fit(mixed)
    claims = [
        Claim.at_most(
            "largest fall of a likelihood, less the smoothing",
            max(map(_fall, (ten, poisson, joint))),
            1e-4,
        ),
        Claim.at_least(
            "digits: mutual information of components and labels, normalised", nmi, 0.65
        ),
        Claim.close("digits: log-likelihood of one component", one.lower_bound_, -25.1, tol=0.1),
        Claim.close("digits: log-likelihood of ten components", ten.lower_bound_, -19.3, tol=0.15),
        Claim.at_least(
            "counts: adjusted Rand index",
            float(adjusted_rand_score(z, poisson.predict(counts))),
            0.85,
        ),
        Claim.at_least(
            "mixed columns: adjusted Rand index",
            float(adjusted_rand_score(z, joint.predict(mixed))),
            0.85,
        ),
    ]

    def draw(figure: Figure) -> None:
        p = ten.energy_.families[0].p.detach().numpy().reshape(2, 5, 8, 8)
        ax = figure.subplots()
        ax.imshow(p.transpose(0, 2, 1, 3).reshape(16, 40), cmap="Greys", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[], title="ten Bernoulli components of binarised digits")

    return Result(claims, {"nmi": nmi}, draw, size=(6.0, 2.8))
