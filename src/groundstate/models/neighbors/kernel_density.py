"""Kernel density: every row is a little hill, and the density their mean."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.neighbors.kernel_density import KernelDensityEnergy
from groundstate.learn.solvers.kernel_density import KernelWidth
from groundstate.math.distances.dissimilarities import TABLES
from groundstate.math.distances.euclidean import POWERS
from groundstate.math.distributions.radial import PROFILES
from groundstate.models import settings
from groundstate.models.arrays import unwrap
from groundstate.models.generative.graphical.tabular import GraphOfColumns
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="neighbors", task="generation", role="generator", auto=False)
class KernelDensity(GraphOfColumns):
    r"""A density without a form: the mean of kernels around the rows.

    .. math:: e(x) = -\log\frac1{\sum_iw_i}\sum_iw_i\,h^{-d}K\Bigl(\frac{\|x - x_i\|}h\Bigr)

    Exact, normalised, and quick to fit; h decides between noise and blur, and what one h can do ends at
    about ten columns. With the Gaussian kernel any columns given others are exact, so that missing cells of a
    row (NaN) are summed out of ``score_samples`` and filled in by ``impute``. Columns of categories have the
    kernel of Aitchison and Aitken, :math:`1 - \lambda` for the same category and :math:`\lambda/(k-1)` for
    others, :math:`\lambda = \frac{k-1}kn^{-2/(d+4)}`.

    Parameters
    ----------
    bandwidth : float, "scott", "silverman" or "likelihood", default=1.0
        h; "likelihood" is the one under which rows that are left out are the most probable.
    algorithm : {"auto", "kd_tree", "ball_tree"}, default="auto"
        scikit-learn's; the sum is always exact, over tiles of all pairs.
    kernel : {"gaussian", "tophat", "epanechnikov", "exponential", "linear", "cosine"}, default="gaussian"
    metric : str, default="euclidean"
        Under others than the Euclidean metric the density is not normalised.
    atol, rtol : float, default=0
        Errors that may be made; none are.
    breadth_first : bool, default=True
    leaf_size : int, default=40
        Of scikit-learn's trees; here without effect.
    metric_params : dict, default=None
        ``{"p": ...}`` for "minkowski".
    scale : {"standard", "minmax"} or None, default=None
        Columns as they are, or of equal scale, so that one h suits all of them.

    Attributes
    ----------
    bandwidth_ : float
        h, in units of the scaled columns.

    Examples
    --------
    >>> from groundstate import KernelDensity
    >>> rng = np.random.RandomState(42)
    >>> X = rng.random_sample((100, 3))
    >>> kde = KernelDensity(kernel="gaussian", bandwidth=0.5).fit(X)
    >>> kde.score_samples(X[:3]).round(8).tolist()
    [-1.52955942, -1.51462041, -1.60244657]
    >>> KernelDensity("likelihood").fit(X).impute([[0.5, np.nan, 0.5]]).round(1).tolist()
    [[0.5, 0.5, 0.5]]
    """

    traits = Traits(
        space={
            "bandwidth": settings.Real(0.02, 3.0, log=True),
            "kernel": settings.Choice("gaussian", "epanechnikov", "exponential"),
        }
    )
    category_code: ClassVar[str] = "levels"
    _constants_stay: ClassVar[bool] = False  # a kernel spreads every column
    _allow_nan: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "bandwidth": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"scott", "silverman", "likelihood"}),
        ],
        "algorithm": [StrOptions({"auto", "kd_tree", "ball_tree"})],
        "kernel": [StrOptions(set(PROFILES))],
        "metric": [StrOptions({"minkowski", *POWERS, *TABLES})],
        "atol": [Interval(Real, 0, None, closed="left")],
        "rtol": [Interval(Real, 0, None, closed="left")],
        "breadth_first": ["boolean"],
        "leaf_size": [Interval(Integral, 1, None, closed="left")],
        "metric_params": [dict, None],
    }

    def __init__(
        self,
        bandwidth: Any = 1.0,
        *,
        algorithm: str = "auto",
        kernel: Any = "gaussian",
        metric: str = "euclidean",
        atol: float = 0,
        rtol: float = 0,
        breadth_first: bool = True,
        leaf_size: int = 40,
        metric_params: dict[str, Any] | None = None,
        scale: str | None = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _part(self, x: Tensor, weight: Tensor | None) -> KernelDensityEnergy:
        p = (self.metric_params or {}).get("p", 2.0)
        return KernelDensityEnergy(x.shape[1], self.kernel, self.levels_, metric=self.metric, p=p)

    def _solver(self, x: Tensor) -> KernelWidth:
        return KernelWidth(self.bandwidth)

    @property
    def bandwidth_(self) -> float:
        check_is_fitted(self, "energy_")
        parts = getattr(self.energy_, "parts", [self.energy_])
        each = [float(part.bandwidth) for part in parts]
        return each[0] if len(each) == 1 else float(np.mean(each))

    @property
    def log_prob_kind(self) -> str:
        """Exact under the Euclidean metric, else up to a constant."""
        parts = getattr(self.energy_, "parts", [self.energy_])
        return "exact" if parts[0].is_euclidean else "unnormalised"

    def score(self, X: Any, y: Any = None) -> float:
        """Log-likelihood of all rows together, as scikit-learn's; ``score_samples`` has that of each."""
        return float(np.sum(unwrap(self.score_samples(X, y))[0]))

    def _log_known(self, part: Any, x: Tensor) -> Tensor:
        free = torch.isnan(x)
        if not bool(free.any()):
            log_p: Tensor = -part(x=x)
            return log_p
        found: Tensor = part.conditional(torch.where(free, 0.0, x), free).log_known
        return found
