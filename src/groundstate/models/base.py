r"""The façade: an energy, a rule and a solver behind scikit-learn's estimator contract.

A public estimator is ``__init__`` plus ``_build``, which names the three pieces, and ``_learned``,
which reads the fitted attributes off the energy. Everything else is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import callback_management_context
from groundstate.compute.random import Key
from groundstate.compute.rows import RowContainer, real_dtype
from groundstate.compute.thread_policy import answering, for_fit
from groundstate.energy.base import Energy
from groundstate.learn import fit as learn
from groundstate.learn.base import History, Problem
from groundstate.models.answers import answers, open_cells
from groundstate.models.arrays import Home, plain_rows, plain_target, tensor, unwrap
from groundstate.models.bridge import callbacks_of
from groundstate.models.inherited import inherit, keep
from groundstate.models.plan import Plan as Plan
from groundstate.models.resident import is_resident, places, weights
from groundstate.models.rows.kinds import KINDS, TABLE, no_example, one_per_row
from groundstate.models.tables.categories import Categories
from groundstate.models.traits import Traits, traits_of
from groundstate.models.validation import checked_weight, constraints_of, validate_data


@cache
def _names(cls: Any) -> tuple[str, ...]:
    """Names of the parameters of a class, whose signature is read once."""
    return tuple(super(EnergyEstimator, cls)._get_param_names())


class EnergyEstimator(CallbackSupportMixin, BaseEstimator):
    """Base of all estimators; see the roles in ``groundstate.models.roles``.

    Parameters
    ----------
    random_state : int, generator, key or None
        The seed: the same gives the same result.
    device : str or torch.device
        Where to compute; None is where X is.
    callbacks : sequence
        Callbacks of groundstate or scikit-learn.
    warm_start : bool
        Begin at the weights of the last fit.
    n_jobs : int or None
        Threads.
    verbose : int
        Above zero, a progress bar on the terminal.
    fit_intercept : bool

    Attributes
    ----------
    energy_ : Energy
        The learned energy.
    rule_ : Rule, where the learning rule has a state of its own (chains, networks, averages)
    history_ : History
        What the solver did.
    n_iter_ : int
        Iterations or epochs of the solver.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) array, when X was a frame with string names
    """

    traits: ClassVar[Traits] = Traits(single_columns=False, counts_all_steps=False, summed=False)
    _store_skip: ClassVar[tuple[str, ...]] = ("callbacks",)
    rows: ClassVar[str] = TABLE  # the kind of rows it takes, see `groundstate.models.rows`
    _runs_on: Any = "any"  # devices of fits and answers: "any", "answers" or "cpu"; see `resident`
    _device_rows: ClassVar[bool] = True  # whether `_checked` leaves rows on their device
    _accept_sparse: ClassVar[bool | str] = False  # "csr" as they are, "dense" made dense
    _allow_nan: ClassVar[bool] = False  # True where a model has a use for missing values
    _allow_infinity: ClassVar[bool] = False  # True where infinite rows have an answer of their own
    _categories: ClassVar[Categories | None] = None  # how columns of categories are read
    _store_private: ClassVar[tuple[str, ...]] = ("_levels",)
    _levels: dict[int, NDArray[Any]]
    _takes_target: ClassVar[bool] = False
    _takes_classes: ClassVar[bool] = False  # True where y are classes, though none are predicted
    _multi_output: ClassVar[bool] = False
    energy_: Energy
    rule_: Any
    history_: History
    n_iter_: int
    n_features_in_: int

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        inherit(cls)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accept_sparse is not False
        tags.input_tags.allow_nan = self._allow_nan
        return tags

    _keep, _example_target = keep, no_example
    _row_target = one_per_row  # of rows that are no tables, `_target` with the rows at hand

    # --- what a preset fills in ----------------------------------------------------------

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        """Name the energy, the rule, the solver and the penalty for this data."""
        raise TypeError(f"{type(self).__name__} must define _build(X, y, weight)")

    def _learned(self, energy: Energy) -> dict[str, Any]:
        """The fitted attributes, by name, read off the energy."""
        return {}

    def _target(self, y: Any) -> tuple[NDArray[Any] | None, dict[str, Any]]:
        """Check and encode y; also the attributes that belong to it, such as ``classes_``."""
        return None, {}

    def _row_weight(self, y: Any, weight: Any) -> Any:
        """Weights of the rows; classifiers multiply those of their classes in."""
        return weight

    def default_space(self) -> dict[str, Any]:
        """The settings worth searching, with their ranges, as ``groundstate.tune.Space`` takes them."""
        return {k: v for k, v in (traits_of(self).space or {}).items() if hasattr(self, k)}

    # --- learning ------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows ``X`` (n_samples, n_features), targets ``y`` and weights.

        A weight of 2 is the row twice.
        """
        self._validate_params()
        with for_fit(X), callback_management_context(self):
            return self._fit(X, y, sample_weight)

    @classmethod
    def _get_param_names(cls: Any) -> list[str]:
        return list(_names(cls))

    def _validate_params(self) -> None:
        """Check the parameters; the constraints of a class are made once."""
        cls: Any = type(self)
        for name, default, allowed in constraints_of(cls):
            value = getattr(self, name)
            if value is default:
                continue
            if not any(one.is_satisfied_by(value) for one in allowed):
                super()._validate_params()  # says what is wrong

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        X_, y_, encoded = self._checked(X, y)
        weight = self._checked_weight(sample_weight, X_)
        device, lives = places(self, X_ if isinstance(X_, RowContainer) else X)
        xt = tensor(X_, device)
        yt = None if y_ is None else tensor(y_, device)
        for name, value in encoded.items():
            setattr(self, name, value)
        weight = self._row_weight(y_, weight)
        wt = None if weight is None else tensor(weight, device)
        plan = self._build(xt, yt, wt)
        data = plan.data or ({"x": xt} if yt is None else {"x": xt, "y": yt})
        plan.energy.to(device, real_dtype({"x": xt}))
        mine, theirs = callbacks_of(self, plan.energy, X, y, sample_weight)
        checked = all(value is xt or value is yt for value in data.values())
        history = self._run(plan, data, wt, mine, checked)
        self.energy_ = plan.energy if lives == device else plan.energy.to(lives)
        self.__dict__.pop("rule_", None)
        if plan.rule.stateful:
            self.rule_ = plan.rule
        self.history_ = history
        self.n_iter_ = max(1, history.n_iter)
        for name, value in self._learned(plan.energy).items():
            setattr(self, name, value)
        if theirs is not None:
            theirs.context.call_on_fit_task_end(
                estimator=self,
                reconstruction_attributes=lambda: self._learned(plan.energy),
                **theirs.metadata,
            )
        return self

    def _run(
        self, plan: Plan, data: Mapping[str, Tensor], weight: Tensor | None, callbacks: list[Any],
        checked: bool,
    ) -> History:  # fmt: skip
        """Learn; what ``learn.fit`` looks for in the data was looked for at the door, if checked."""
        seed = getattr(self, "random_state", 0)  # without the parameter nothing is random
        if plan.solver is not None and checked:
            problem = Problem(
                plan.energy, plan.rule, data, weight, plan.penalty, tuple(callbacks), Key.of(seed)
            )
            if plan.solver.reason_against(problem) is None:
                return plan.solver.run(problem)
        return learn(
            plan.energy, data, plan.rule, plan.solver, sample_weight=weight, penalty=plan.penalty,
            callbacks=callbacks, random_state=seed,
        )  # fmt: skip

    # --- validation ----------------------------------------------------------------------

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        if self.rows != TABLE:
            return KINDS[self.rows].learned(self, X, y)
        return self._checked_table(X, y)

    def _checked_table(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        X = X if self._categories is None else self._categories.learned(self, X)
        if self._stays(X) and len(X) >= self._min_rows():
            found = self._resident_target(y, X) if self._takes_target else (None, {})
            if found is not None:
                return self._counted(X.detach()), *found
        X, _ = unwrap(X)
        kind = {
            "dtype": [np.float64, np.float32], "order": "C",
            "accept_sparse": "csr" if self._accept_sparse else False,
            "ensure_all_finite": "allow-nan" if self._allow_nan else True,
        }  # fmt: skip
        if not self._takes_target:
            least = self._min_rows()
            if plain_rows(X, least):
                return self._counted(X), None, {}
            X = validate_data(self, X, ensure_min_samples=least, **kind)
            return self._densified(X), None, {}
        y, _ = unwrap(y)
        if plain_rows(X) and plain_target(y, len(X), self._multi_output):
            X = self._counted(X)
        else:
            X, y = validate_data(self, X, y, multi_output=self._multi_output, **kind)
            X = self._densified(X)
        encoded, attributes = self._target(y)
        if encoded is not None and encoded.dtype.kind == "f":
            encoded = encoded.astype(X.dtype, copy=False)
        X = X if self._categories is None else self._categories.numbered(self, X)
        return X, encoded, attributes

    def _densified(self, X: Any) -> Any:
        """Sparse rows as an array, where a model needs every entry of a row."""
        return X.toarray() if self._accept_sparse == "dense" and issparse(X) else X

    def _counted(self, X: Any) -> Any:
        """Rows without names of columns, whose number is what later rows must have."""
        self.n_features_in_ = X.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        return X

    def _stays(self, X: Any) -> bool:
        """Whether rows on a device are ready to be learned from there."""
        return self._runs_on == "any" and self._device_rows and is_resident(X, self._allow_nan)

    def _resident_target(self, y: Any, X: Tensor) -> tuple[Tensor, dict[str, Any]] | None:
        """`_target` of y on the device of X, or None where it needs the checks of the host."""
        return None

    def _min_rows(self) -> int:
        return 1

    def _checked_weight(self, weight: Any, X: Any) -> Any:
        if weight is None:
            return None
        return checked_weight(weight, X) if (w := weights(weight, X)) is None else w

    def _rows(self, X: Any) -> tuple[Tensor, Home]:
        """New rows as a tensor on the energy's device, and where answers go."""
        if self.rows != TABLE:
            return KINDS[self.rows].asked(self, X)  # type: ignore[return-value]  # a container
        return self._table_rows(X)

    def _table_rows(self, X: Any) -> tuple[Tensor, Home]:
        if "energy_" not in self.__dict__:  # the check makes all tags first
            check_is_fitted(self, "energy_")
        if self._categories is not None and self._levels:
            return self._categories.asked(self, X)
        device, dtype = self.energy_.placement()
        named = hasattr(self, "feature_names_in_")
        same = isinstance(X, Tensor) and X.device == device and not named
        if same and is_resident(X, self._allow_nan) and X.shape[1] == self.n_features_in_:
            return X.detach().to(dtype), Home(X.device)
        X, home = unwrap(X)
        kept = np.float64 if dtype == torch.float64 else np.float32
        plain = plain_rows(X) and X.dtype == kept and X.shape[1] == self.n_features_in_
        if named or not plain:
            X = validate_data(
                self, X, reset=False, dtype=kept, order="C",
                accept_sparse="csr" if self._accept_sparse else False,
                ensure_all_finite="allow-nan" if self._allow_nan else True,
            )  # fmt: skip
        return tensor(self._densified(X), device), home

    # --- questions -----------------------------------------------------------------------

    def energy(self, X: Any, y: Any = None, z: Any = None) -> Any:
        """Energy of each row, low where the values fit together, ``(n_samples,)``.

        Variables of the energy that are not passed are marginalised (free energy).
        """
        x, home = self._rows(X)
        values = {"x": x, **self._observed({"y": y, "z": z})}
        hidden = [name for name in self.energy_.spaces if name not in values]
        with answering(self.energy_, x):
            e = self.energy_.marginal(*hidden)(**values) if hidden else self.energy_(**values)
        return home.give(e)

    def infer(
        self,
        observed: Mapping[str, Any],
        free: str | tuple[str, ...],
        mode: Literal["min", "marginal", "sample"] = "min",
        *,
        n: int = 1,
        T: float = 1.0,
        random_state: Any = None,
    ) -> Any:
        """Fix what is observed and minimise, marginalise or sample the rest.

        Parameters
        ----------
        observed : values by variable name: ``"x"`` rows, ``"y"`` labels or targets, ``"z"`` codes
        free : the variables asked for; of rows that are also observed, the NaN cells alone
        mode : ``"min"`` (best values), ``"marginal"`` (free energy) or ``"sample"``
        n : draws, for ``mode="sample"``
        T : temperature

        Returns
        -------
        One array for a single free variable (a dict for several): best values ``(B, ...)``, free
        energies ``(B,)`` or draws ``(n, B, ...)``.
        """
        check_is_fitted(self, "energy_")
        names = (free,) if isinstance(free, str) else tuple(free)
        home = unwrap(next(iter(observed.values())))[1] if observed else Home()
        unknown = None
        if "x" in names and observed.get("x") is not None:
            rows, unknown = open_cells(unwrap(observed["x"])[0])
            observed = {**observed, "x": rows}
        found = answers(
            self.energy_, names, self._observed(observed), unknown, mode, n=n, T=T,
            generator=Key.of(random_state).torch(self.energy_.placement()[0]),
        )  # fmt: skip
        if mode == "marginal":
            return home.give(found)
        decoded = {name: self._decoded(name, v, home) for name, v in found.items()}
        return decoded[free] if isinstance(free, str) else decoded

    def _observed(self, values: Mapping[str, Any]) -> dict[str, Tensor]:
        device, dtype = self.energy_.placement()
        out = {}
        for name, value in ((k, v) for k, v in values.items() if v is not None):
            if name == "x":
                out[name] = self._rows(value)[0]
                continue
            array, _ = unwrap(value)
            space = self.energy_.spaces.get(name)
            if space is None:
                raise ValueError(
                    f"{type(self).__name__} has no variable {name!r}; it knows "
                    f"{', '.join(self.energy_.spaces)}"
                )
            encoded = np.asarray(self._encoded(name, np.asarray(array)))
            t = torch.from_numpy(np.ascontiguousarray(encoded)).to(device, space.dtype(dtype))
            out[name] = t.reshape(len(t), *space.shape)
        return out

    def _encoded(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """Users' values of a variable as the core's, e.g. labels as class numbers."""
        return values

    def _decoded(self, name: str, values: Tensor, home: Home) -> Any:
        """The core's values of a variable as users know them."""
        return home.give(values)

    # --- storage -------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write the fitted estimator to one file (JSON and safetensors, atomically)."""
        from groundstate.store import save

        check_is_fitted(self, "energy_")
        return save(self, path)
