r"""One contract for every model that generates: learn, sample, score, fill in, ask.

A row is coded (`groundstate.models.generative.coding`), the energy knows coded rows and the context of
y, and every answer comes back in the rows' own units.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted
from torch import Tensor

from groundstate.compute.device import resolve_device
from groundstate.compute.foreign.sklearn import StrOptions
from groundstate.compute.random import Key
from groundstate.compute.thread_policy import answering
from groundstate.errors import DataError, ShapeError, Unsupported
from groundstate.models.arrays import Home, plain_rows, tensor, unwrap
from groundstate.models.base import EnergyEstimator
from groundstate.models.generative.coding import Coding
from groundstate.models.generative.completion import impute
from groundstate.models.generative.condition import Condition
from groundstate.models.generative.filling import filled, log_known_of_draws
from groundstate.models.generative.questions import infer
from groundstate.models.generative.shapes import Shapes, as_given, flattened
from groundstate.models.tables.categories import Categories
from groundstate.models.validation import checked_count, validate_data

BLOCK = 2**22  # numbers of the rows that are drawn or answered at once
PLACES = 8  # in the cell of a dequantised row at which its density is taken


class GenerativeEstimator(EnergyEstimator):
    r"""Base of all models that generate, :math:`p(x) \propto e^{-e(x)}` or :math:`p(x \mid y)`.

    Parameters
    ----------
    scale : "standard", "minmax" or None
        Columns of mean 0 and spread 1, columns in [-1, 1], or as they are; learned in ``fit``,
        undone in ``sample``, and its Jacobian is in ``score_samples``.
    dequantize : bool
        Whole numbers stand for cells [k, k + 1): learning spreads them over it, ``sample`` gives whole
        numbers, and ``score_samples`` bounds their log probability from below.

    Attributes
    ----------
    event_shape_ : tuple
        Shape of one row: ``(d,)``, ``(H, W)`` or ``(C, H, W)``.
    coding_ : Coding
        How columns are coded.
    condition_ : Condition or None
        What y was in ``fit``.
    log_prob_kind_ : str
        What ``score_samples`` gives: "exact", a lower "bound", an "estimate", "unnormalised" (up to a
        constant) or "none".
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "scale": [StrOptions({"standard", "minmax", "unit"}), None],
        "dequantize": ["boolean"],
    }
    _categories: ClassVar[Categories | None] = Categories(text=True)
    _store_private: ClassVar[tuple[str, ...]] = ("_shapes",)
    _constants_stay: ClassVar[bool] = True  # draws hold the one value of a column that has no other
    category_code: ClassVar[str] = "dequantise"  # how categories enter: see `coding.CODES`
    log_prob_kind: Any = "exact"  # of `_log_prob`, a class variable or a property

    scale: str | None = None
    dequantize: bool = False
    coding_: Coding
    condition_: Condition | None
    event_shape_: tuple[int, ...]
    _shapes: Shapes
    _given_weight: Any = None
    impute, infer = impute, infer

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = tags.input_tags.three_d_array = True
        tags.input_tags.string = tags.input_tags.categorical = self._categories is not None
        tags.target_tags.required = False
        return tags

    # --- what a family fills in ----------------------------------------------------------

    def _log_prob(self, x: Tensor, y: Tensor | None) -> Tensor:
        """Log density of coded rows given their context, ``(B,)``, differentiable."""
        given = {"x": x} if y is None else {"x": x, "y": y}
        hidden = [name for name in self.energy_.spaces if name not in given]
        energy = self.energy_.marginal(*hidden) if hidden else self.energy_
        if "x" not in self.energy_.normalised:
            raise Unsupported(f"{type(self).__name__} has no log density of its own")
        return -energy(**given)

    def _draw(
        self, n: int, y: Tensor | None, T: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        """Coded rows ``(n, D)``, and what is hidden behind them where there is such a thing."""
        drawn: dict[str, Tensor] = self.energy_.ancestral(n, T=T, generator=generator)  # type: ignore[operator]
        return drawn["x"], drawn.get("z")

    def _fill(
        self, x: Tensor, unknown: Tensor, y: Tensor | None, how: str, generator: torch.Generator
    ) -> Tensor:
        """Coded rows with their unknown cells most probable ("minimise") or drawn ("sample")."""
        return filled(self, x, unknown, y, how, generator)

    def _fill_mean(
        self, x: Tensor, unknown: Tensor, y: Tensor | None, generator: torch.Generator
    ) -> Tensor | None:
        """The conditional mean of unknown cells where it is known in closed form, else None."""
        return None

    def _log_known_by_y(
        self, x: Tensor, unknown: Tensor, contexts: Tensor, generator: torch.Generator
    ) -> Tensor:
        """Log probability of the known cells given each context, ``(B, m)``, but for a constant of each row."""
        return log_known_of_draws(self, x, unknown, contexts, generator)

    @property
    def _takes_no_label(self) -> bool:
        """Whether the model has learned what rows of unknown y are like, whose context is zeros."""
        return False

    # --- reading -------------------------------------------------------------------------

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        flat, shapes = flattened(X)
        before = self.n_features_in_ if self._goes_on else None
        rows, _, attributes = self._checked_table(flat, None)
        if before is not None and rows.shape[1] != before:
            self.n_features_in_ = before
            raise ValueError(
                f"X has {rows.shape[1]} features, but {type(self).__name__} is expecting {before} "
                "features as input; use warm_start=False for other data"
            )
        shapes = shapes.closed(rows.shape[1])
        attributes |= {"_shapes": shapes, "event_shape_": shapes.event}
        y = unwrap(y)[0]
        if y is None:
            return rows, None, {**attributes, "condition_": None}
        check_consistent_length(rows, y)
        seen = self.condition_ if self._goes_on else self._learned_condition(y, rows)
        assert seen is not None
        codes = seen.encode(y).astype(str(rows.dtype).removeprefix("torch."))
        return rows, codes, {**attributes, "condition_": seen}

    def _learned_condition(self, y: Any, rows: Any) -> Condition:
        weight = self._checked_weight(self._given_weight, rows)
        return Condition.learned(y, weight.cpu() if isinstance(weight, Tensor) else weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._given_weight = sample_weight
        try:
            return super()._fit(X, y, sample_weight)
        finally:
            del self._given_weight

    @property
    def _goes_on(self) -> bool:
        """Whether learning goes on from what is there."""
        return False

    def _learn_coding(self, X: Tensor, weight: Tensor | None) -> None:
        """Learn the code of the columns from training rows ``(n, d)``."""
        levels = {j: len(v) for j, v in getattr(self, "_levels", {}).items()}
        self.coding_ = Coding.learned(
            X, levels, code=self.category_code, scale=self._scaling, dequantize=self.dequantize,
            pooled=len(self.event_shape_) > 1, weight=weight, constants=self._constants_stay,
        )  # fmt: skip

    @property
    def _scaling(self) -> str | None:
        """How columns are scaled: ``scale``, or what a family makes of it."""
        return self.scale

    @property
    def levels_(self) -> list[int]:
        """Of each coded column the number of levels that it numbers, 0 for a real one."""
        return self.coding_.coded_levels

    def _raw(self, X: Any, allow_nan: bool = False) -> tuple[Tensor, Home]:
        """Rows ``(B, d)`` as in the table, of the shape that was learned, and where answers go."""
        check_is_fitted(self, "energy_")
        flat, shapes = flattened(X)
        if shapes.event and shapes.event != self.event_shape_:
            raise ShapeError(
                f"{type(self).__name__} was fitted to rows of shape {self.event_shape_}, got "
                f"{shapes.event}"
            )
        levels = getattr(self, "_levels", {})
        if not allow_nan and not levels:
            return self._table_rows(flat)
        if levels:
            assert self._categories is not None
            x, home = self._categories.asked(self, flat)
        else:
            rows, home = unwrap(flat)
            device, dtype = self.energy_.placement()
            kept = np.float64 if dtype == torch.float64 else np.float32
            finite: Any = "allow-nan"
            plain = plain_rows(rows) and rows.dtype == kept and rows.shape[1] == self.n_features_in_
            if not plain or hasattr(self, "feature_names_in_"):
                rows = validate_data(
                    self, rows, reset=False, dtype=kept, order="C", ensure_all_finite=finite,
                    accept_sparse="csr" if self._accept_sparse else False,
                )  # fmt: skip
                rows = self._densified(rows)
            x = tensor(rows, device)
        if not allow_nan and bool(torch.isnan(x).any()):
            i, j = torch.isnan(x).nonzero()[0].tolist()
            raise DataError(
                f"row {i}, column {j} of X is missing or holds a level that was not seen in fit; fill it "
                "in with impute, or drop the row"
            )
        return x, home

    def _rows(self, X: Any) -> tuple[Tensor, Home]:
        x, home = self._raw(X)
        return self.coding_.encode(x), home

    def _contexts(self, y: Any, n: int) -> Tensor | None:
        """Contexts ``(n, q)`` of y on the device of θ, None where there is no y."""
        if y is None:
            return None
        if self.condition_ is None:
            raise ValueError(f"{type(self).__name__} was fitted without y, so it takes none here")
        codes = self.condition_.encode(y)
        if len(codes) == 1 and n > 1:
            codes = np.repeat(codes, n, axis=0)
        if len(codes) != n:
            raise ShapeError(f"y has {len(codes)} rows for {n}; give one for each, or one for all")
        device, dtype = self.energy_.placement()
        return torch.from_numpy(codes).to(device, dtype)

    @property
    def _block(self) -> int:
        """Rows drawn or answered at once: a function of their size alone, so that draws are."""
        return max(1, min(4096, BLOCK // max(1, math.prod(self.event_shape_))))

    def to(self, device: Any) -> Self:
        """Move what was learned to a device."""
        check_is_fitted(self, "energy_")
        self.energy_.to(resolve_device(device))
        if hasattr(self, "rule_"):
            self.rule_.to(resolve_device(device))
        return self

    # --- density -------------------------------------------------------------------------

    @property
    def log_prob_kind_(self) -> str:
        check_is_fitted(self, "energy_")
        kind = str(self.log_prob_kind)
        return "bound" if kind == "exact" and self.coding_.is_spread else kind

    def _density(self, x: Tensor, y: Tensor | None) -> Tensor:
        """Log density of coded rows in the units of the rows, ``(B,)``; y unknown is summed out."""
        if y is None and self.condition_ is not None:
            contexts, logs = self.condition_.all_contexts(x)
            each = [
                self._density(x, c.expand(len(x), -1)) + log
                for c, log in zip(contexts, logs, strict=True)
            ]
            return torch.logsumexp(torch.stack(each), 0)
        if not self.coding_.is_spread:
            return self._log_prob(x, y) - self.coding_.log_scale
        width = torch.from_numpy(self.coding_.cells).to(x)
        places = Key.of(0).fold("cells").numpy().uniform(-0.5, 0.5, (PLACES, len(width)))
        each = [self._log_prob(x + torch.from_numpy(u).to(x) * width, y) for u in places]
        return torch.stack(each).logsumexp(0) - math.log(PLACES) - self.coding_.log_scale

    def score_samples(self, X: Any, y: Any = None) -> Any:
        """Log density of each row in nats, ``(n_samples,)``; ``log_prob_kind_`` says of what kind.

        Of a model that was fitted with y, given y, or summed over what y was in training.
        """
        x, home = self._rows(X)
        if self.log_prob_kind_ == "none":
            raise Unsupported(
                f"{type(self).__name__} generates without a density (log_prob_kind_ is 'none'); judge "
                "it with groundstate.evaluate.assess_generator"
            )
        c = self._contexts(y, len(x))
        with answering(self.energy_, x):
            parts = [self._density(rows, own) for rows, own in self._blocks(x, c)]
        return home.give(torch.cat(parts))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log density of the rows in nats."""
        return float(np.mean(unwrap(self.score_samples(X, y))[0]))

    def log_prob(self, x: Tensor, y: Any = None) -> Tensor:
        """Log density of rows ``(B, *event_shape_)`` as a tensor with gradients in x, ``(B,)``."""
        check_is_fitted(self, "energy_")
        if self.log_prob_kind_ == "none":
            raise Unsupported(f"{type(self).__name__} has no density; see score_samples")
        device, dtype = self.energy_.placement()
        flat = x.to(device, dtype).reshape(len(x), -1)
        return self._density(self.coding_.encode(flat), self._contexts(y, len(x)))

    def energy(self, X: Any, y: Any = None, z: Any = None) -> Any:
        """Energy of each row, low where the values fit together, ``(n_samples,)``.

        Without z what is hidden is summed out, so that of a normalised model this is
        :math:`-\\log p(x)` of coded rows.
        """
        x, home = self._rows(X)
        c = self._contexts(y, len(x))
        code = None if z is None else self._observed({"z": z})["z"]
        with answering(self.energy_, x):
            return home.give(self._energies(x, c, code))

    def _energies(self, x: Tensor, y: Tensor | None, z: Tensor | None) -> Tensor:
        """Energies of coded rows, ``(B,)``."""
        given = {k: v for k, v in (("x", x), ("y", y), ("z", z)) if v is not None}
        if all(name in given for name in self.energy_.spaces):
            return self.energy_(**given)
        return -(self._density(x, y) + self.coding_.log_scale)

    def _blocks(self, x: Tensor, *others: Tensor | None) -> Iterator[Any]:
        for at in range(0, len(x), self._block):
            cut = slice(at, at + self._block)
            yield (x[cut], *(None if v is None else v[cut] for v in others))

    # --- draws ---------------------------------------------------------------------------

    def sample(
        self,
        n_samples: int = 1,
        y: Any = None,
        *,
        T: float = 1.0,
        return_latent: bool = False,
        random_state: Any = None,
    ) -> Any:
        """Draw rows, ``(n_samples, *event_shape_)``.

        Parameters
        ----------
        n_samples : int
        y : label or values, or one for each row
            What to draw rows of; None draws y as it was in training.
        T : temperature; below 1 nearer to the modes
        return_latent : also give what was hidden behind each row
        random_state : the seed; the same gives the same rows, whatever is drawn at once
        """
        check_is_fitted(self, "energy_")
        if y is not None and n_samples == 1 and np.ndim(unwrap(y)[0]) > 0:
            n_samples = len(y)
        parts = list(self._drawn(n_samples, y, T, Key.of(random_state)))
        rows = as_given(torch.cat([x for x, _ in parts]), self)
        if not return_latent:
            return rows
        if any(z is None for _, z in parts):
            raise Unsupported(f"{type(self).__name__} has nothing hidden behind its rows")
        return rows, self._shapes.home(self).give(torch.cat([z for _, z in parts if z is not None]))

    def iter_samples(
        self, n_samples: int, y: Any = None, *, T: float = 1.0, random_state: Any = None
    ) -> Iterator[Any]:
        """The rows of ``sample`` in blocks, so that memory does not grow with their number."""
        check_is_fitted(self, "energy_")
        for x, _ in self._drawn(n_samples, y, T, Key.of(random_state)):
            yield as_given(x, self)

    def _drawn(self, n: int, y: Any, T: float, key: Key) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Rows in blocks of a fixed size, each with its own key, decoded."""
        n = checked_count(n)
        if not T > 0:
            raise ValueError(f"T is a temperature and must be positive, got {T}")
        device, dtype = self.energy_.placement()
        contexts = self._contexts(y, n)
        if contexts is None and self.condition_ is not None:
            drawn = self.condition_.draw(n, key.fold("y"))
            contexts = torch.from_numpy(drawn).to(device, dtype)
        for i, at in enumerate(range(0, n, self._block)):
            m = min(self._block, n - at)
            own = None if contexts is None else contexts[at : at + m]
            generator = key.fold("block", i).torch(device)
            with torch.no_grad():
                x, z = self._draw(m, own, T, generator)
            yield self.coding_.decode(x), z

    def _decoded(self, name: str, values: Tensor, home: Home) -> Any:
        if name != "x":
            return home.give(values)
        lead = values.shape[:-1]
        rows = self.coding_.decode(values.reshape(-1, values.shape[-1]))
        return home.give(rows.reshape(*lead, *self.event_shape_))
