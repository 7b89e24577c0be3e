"""Tables by the chain rule."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.energy.sequences.columns import NETWORKS, ColumnChainEnergy
from groundstate.models import settings
from groundstate.models.generative.autoregressive.chain import ChainGenerator
from groundstate.models.traits import Traits
from groundstate.nn.columns.heads import FAMILIES
from groundstate.registry import models

ENOUGH = 100  # rows, of which a tenth says something


@models.register(family="autoregressive", task="generation", role="generator")
class AutoregressiveDensity(ChainGenerator):
    r"""A table column by column: each is drawn given those before it.

    .. math::
        e(x) = -\sum_{j=1}^d\log p(x_{\pi(j)} \mid x_{\pi(1)}, \dots, x_{\pi(j-1)}, y), \qquad
        p(x_j \mid \cdot) = \mathrm{softmax}(o_j) \ \text{or}\
        \sum_{k=1}^K\pi_{jk}\,N(x_j; \mu_{jk}, \sigma_{jk}^2) .

    A column of categories has a categorical distribution, a real one a mixture; their parameters
    :math:`o_j` come from one network that sees the columns before j alone. Log densities are exact, also
    of tables with both kinds of columns, and draws are independent. Missing cells are drawn in the order
    and weighted by the known cells behind them; where the missing cells come last that is exact.

    Parameters
    ----------
    network : {"made", "gru", "attention", "linear"} or module, default="made"
        A masked dense network, a recurrent one, causal attention, or linear maps.
    n_components : int, default=5
        K; 1 makes every real column normal given those before.
    conditional : {"normal", "logistic"}, default="normal"
        Components of real columns.
    min_scale : float, default=0.01
        The least :math:`\sigma`, in units of the column's spread: repeated values have no spread of their
        own, and a density without bound.
    order : sequence of int or "random", default=None
        π; None is the order of the table.
    hidden_layer_sizes : sequence of int, default=(128, 128)
        Of "gru" and "attention" the first is the size of a state and their number that of layers.

    early_stopping : bool or "auto", default="auto"
        As in other networks; "auto" holds rows out where there are at least 100.

    Attributes
    ----------
    order_ : (n_features,) array

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import AutoregressiveDensity
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(300, 1))
    >>> X = np.concatenate([x, x + 0.5 * rng.normal(size=(300, 1))], 1)
    >>> model = AutoregressiveDensity(network="linear", n_components=1, random_state=0).fit(X)
    >>> model.log_prob_kind_, model.sample(3, random_state=0).shape
    ('exact', (3, 2))
    >>> bool(abs(np.corrcoef(model.sample(2000, random_state=0).T)[0, 1] - 0.89) < 0.05)
    True
    """

    category_code: ClassVar[str] = "levels"
    _store_private: ClassVar[tuple[str, ...]] = ("_many",)
    log_prob_kind = "exact"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "network": [StrOptions(set(NETWORKS)), nn.Module],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "conditional": [StrOptions(set(FAMILIES))],
        "min_scale": [Interval(Real, 0, None, closed="neither")],
        "order": ["array-like", StrOptions({"random"}), None],
        "early_stopping": ["boolean", StrOptions({"auto"})],
    }
    traits = Traits(
        space={
            "learning_rate_init": settings.Real(5e-4, 1e-2, log=True),
            "n_components": settings.Whole(1, 10),
            "alpha": settings.Real(1e-6, 1e-2, log=True),
        }
    )
    n_components: int
    conditional: str
    min_scale: float
    order: Any
    _many: float

    def __init__(
        self,
        network: Any = "made",
        *,
        n_components: int = 5,
        conditional: str = "normal",
        min_scale: float = 0.01,
        order: Any = None,
        hidden_layer_sizes: Any = (128, 128),
        activation: str = "relu",
        solver: Any = "adam",
        learning_rate_init: float = 2e-3,
        batch_size: int = 128,
        max_iter: int = 200,
        alpha: float = 1e-4,
        early_stopping: Any = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: float = 30,
        tol: float = 1e-4,
        warm_start: bool = False,
        scale: str | None = "standard",
        dequantize: bool = False,
        ema_decay: float | None = None,
        verbose: Any = False,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _learn_preparation(self, X: Any, y: Any, weight: Tensor | None) -> None:
        super()._learn_preparation(X, y, weight)
        self._counts = weight
        self._many = len(X) if weight is None else float(weight.sum())

    @property
    def val_fraction(self) -> float:  # type: ignore[override]
        given: Any = self.early_stopping
        watches = self._many >= ENOUGH if given == "auto" else given
        return self.validation_fraction if watches else 0.0

    def _energy_of(self, x: Tensor, y: Tensor | None, key: Key) -> Energy:  # type: ignore[override]
        energy = ColumnChainEnergy(
            self.levels_, self.network, self._hidden, self.activation, self.n_components,
            self.conditional, float(self.min_scale), 0 if y is None else y.shape[1],
            self._positions(x.shape[1], key), generator=key.fold("weights").torch(),
        ).to(x.device, x.dtype)  # fmt: skip
        energy.start_at(x, self.__dict__.pop("_counts"))
        return energy

    def _positions(self, d: int, key: Key) -> Any:
        if self.order is None:
            return None
        if isinstance(self.order, str):
            return [int(j) for j in key.fold("order").numpy().permutation(d)]
        return [int(j) for j in np.asarray(self.order).ravel()]

    @property
    def order_(self) -> NDArray[np.int64]:
        energy: Any = self.energy_
        return np.array(energy.order)

    def conditionals(self, X: Any, y: Any = None) -> Any:
        """Log-probability of each column given those before it in the order, ``(n_samples, n_features)``.

        Their sum is ``score_samples``: which column makes a row unusual.
        """
        x, home = self._rows(X)
        c = self._contexts(y, len(x))
        if c is None and self.condition_ is not None:
            raise ValueError("a model that was fitted with y needs it here too")
        energy: Any = self.energy_
        with torch.no_grad():
            parts = [energy.factors(a, b) for a, b in self._blocks(x, c)]
        scale = torch.from_numpy(np.log(self.coding_.scale)).to(x)
        return home.give(torch.cat(parts) - scale)
