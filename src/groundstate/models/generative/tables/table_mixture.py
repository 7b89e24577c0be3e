"""A mixture over the columns of a table, of any kind."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.latent.table_mixture import TableMixtureEnergy
from groundstate.learn.solvers.em.expected import ExpectedEM
from groundstate.learn.solvers.latent.mixtures.table_mixture import TableMixtureEM
from groundstate.models import settings
from groundstate.models.generative.graphical.tabular import GraphOfColumns
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="mixtures", task="generation", role="generator", auto=False)
class TableMixture(GraphOfColumns):
    r"""Rows of a table come from a few components; in each of them numbers are Gaussian together and
    categories independent.

    .. math:: e(x) = -\log\sum_z\pi_z\,N(x_r; \mu_z, \Sigma_z)\prod_jp_{zj}(x_j)

    Exact in every direction: densities, draws, and any columns given any others. How many components
    there are is chosen by the likelihood of held-out rows.

    Parameters
    ----------
    n_components : int or "likelihood", default="likelihood"
        "likelihood" tries 1, 2, 4, ... until the four-fold held-out likelihood falls, and keeps the best.
    prior : float, default=1.0
        Rows that every component is given beforehand: with the categories of the whole table, and a
        variance within the component of a tenth of the column's. They keep components off single rows.
    scale : {"standard", "minmax"} or None, default="standard"
    tol : float, default=1e-4
        EM stops when an iteration gains less, in nats per row.
    max_iter : int, default=100
        Iterations of EM at most.

    Attributes
    ----------
    n_components_ : int, or with classes y an array of one number for each
    held_out_ : dict
        Mean log-likelihood of held-out rows, scaled, by the number of components; without classes y.
    energy_ : TableMixtureEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import TableMixture
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(400) < 0.5
    >>> X = np.where(z[:, None], rng.normal(3, 1, (400, 2)), rng.normal(-3, 1, (400, 2)))
    >>> model = TableMixture(random_state=0).fit(X)
    >>> model.n_components_, model.impute(np.array([[3.0, np.nan]])).round(0).tolist()
    (2, [[3.0, 3.0]])
    """

    traits = Traits(
        space={
            "n_components": settings.Whole(1, 64, log=True),
            "prior": settings.Real(0.1, 10.0, log=True),
        },
        steps="max_iter",
    )
    category_code: ClassVar[str] = "levels"
    _allow_nan: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [
            Interval(Integral, 1, None, closed="left"), StrOptions({"likelihood"})
        ],
        "prior": [Interval(Real, 0, None, closed="neither")],
    }  # fmt: skip

    def __init__(
        self,
        n_components: Any = "likelihood",
        *,
        prior: float = 1.0,
        scale: str | None = "standard",
        tol: float = 1e-4,
        max_iter: int = 100,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _part(self, x: Tensor, weight: Tensor | None) -> TableMixtureEnergy:
        return TableMixtureEnergy(1, self.levels_, self.prior)

    def _solver(self, x: Tensor) -> TableMixtureEM:
        return TableMixtureEM(self.n_components, ExpectedEM(self.tol, self.max_iter, quiet=True))

    @property
    def n_components_(self) -> int | NDArray[np.int64]:
        check_is_fitted(self, "energy_")
        parts = getattr(self.energy_, "parts", [self.energy_])
        each = [part.k for part in parts]
        return each[0] if len(each) == 1 else np.array(each)

    @property
    def held_out_(self) -> dict[int, float]:
        check_is_fitted(self, "energy_")
        values = self.history_.extra.get("held_out", [])
        return {2**i: value for i, value in enumerate(values)}

    def _log_known(self, part: Any, x: Tensor) -> Tensor:
        free = torch.isnan(x)
        known = torch.where(free, 0.0, x)
        found: Tensor = part.log_marginal(known, free) if bool(free.any()) else -part(x=x)
        return found

    def _mean_of(self, conditional: Any) -> Tensor:
        mean: Tensor = conditional.mean
        columns = [
            p.argmax(1).to(mean) if p.shape[1] else mean[:, j]
            for j, p in enumerate(conditional.marginals())
        ]
        return torch.stack(columns, 1)
