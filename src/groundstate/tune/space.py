r"""Search spaces: which settings there are and what they may be."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from groundstate.errors import DataError
from groundstate.models.settings import Choice, Real, Setting, Whole
from groundstate.tune.extra import optuna_module


class Space:
    r"""Settings :math:`\lambda` that affect learning, by name.

    Parameters
    ----------
    settings : mapping, Space or callable
        Names are those of ``set_params`` (``"ridge__alpha"``). Values are ``Real``, ``Whole`` or
        ``Choice``, Optuna distributions, lists of values (objects too, such as kernels or whole
        estimators), or frozen scipy distributions, which serve as the prior. A function of an
        Optuna trial that returns the settings makes a conditional space.

    Examples
    --------
    >>> space = Space({"C": Real(1e-3, 1e3, log=True), "kernel": ["rbf", "poly"]})
    >>> space.names, space.size
    (['C', 'kernel'], inf)
    >>> Space.from_json(space.to_json()) == space
    True
    >>> [row["degree"] for row in Space({"degree": Whole(1, 3)}).grid()]
    [1, 2, 3]
    """

    def __init__(
        self, settings: Mapping[str, Any] | Space | Callable[[Any], Mapping[str, Any]]
    ) -> None:
        self.function: Callable[[Any], Mapping[str, Any]] | None = None
        self.settings: dict[str, Setting] = {}
        if isinstance(settings, Space):
            self.function, self.settings = settings.function, dict(settings.settings)
        elif isinstance(settings, Mapping):
            self.settings = {name: _setting(name, value) for name, value in settings.items()}
        elif callable(settings):
            self.function = settings
        else:
            raise DataError(
                f"a space is a mapping of names to ranges or a function of a trial, got "
                f"{type(settings).__name__}; try Space({{'C': Real(1e-3, 1e3, log=True)}})"
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space) or self.function is not other.function:
            return False
        return self._rows() == other._rows()

    def __hash__(self) -> int:
        return hash(tuple(self.settings))

    def __repr__(self) -> str:
        if self.function is not None:
            return f"Space({self.function!r})"
        return f"Space({self.settings!r})"

    def __len__(self) -> int:
        return len(self.settings)

    def __iter__(self) -> Iterator[str]:
        return iter(self.settings)

    def __getitem__(self, name: str) -> Setting:
        return self.settings[name]

    @property
    def names(self) -> list[str]:
        """Names of the settings; none are known in advance of a conditional space."""
        return list(self.settings)

    @property
    def size(self) -> float:
        """Number of different settings, the product over names; infinite for a continuum."""
        if self.function is not None:
            return math.inf
        return math.prod(float(_count(setting)) for setting in self.settings.values())

    @property
    def priors(self) -> dict[str, Any]:
        """The scipy distributions, by name, of settings that have one."""
        found = {name: getattr(row, "prior", None) for name, row in self.settings.items()}
        return {name: prior for name, prior in found.items() if prior is not None}

    def grid(self) -> list[dict[str, Any]]:
        """All settings, the last name changing fastest."""
        return [
            {name: self.value(name, label) for name, label in zip(self.settings, row)}
            for row in itertools.product(*self.labels().values())
        ]

    def labels(self) -> dict[str, list[Any]]:
        """Of every setting the values that a grid has, as a study stores them."""
        if self.function is not None:
            raise DataError("a conditional space has no grid; take sampler='smbo' or 'random'")
        return {name: _values(name, row) for name, row in self.settings.items()}

    def value(self, name: str, label: Any) -> Any:
        """The value behind what a study stores."""
        row = self.settings.get(name)
        if isinstance(row, Choice) and row.labels is not row.choices:
            return row.choices[row.labels.index(label)]
        return label

    def suggest(self, trial: Any) -> dict[str, Any]:
        """Ask an Optuna trial for every setting."""
        if self.function is not None:
            return dict(self.function(trial))
        return {
            name: self.value(name, _ask(trial, name, row)) for name, row in self.settings.items()
        }

    def decode(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Settings from the parameters of a finished trial."""
        if self.function is not None:
            from optuna.trial import FixedTrial

            return dict(self.function(FixedTrial(dict(params))))
        return {name: self.value(name, label) for name, label in params.items()}

    def distributions(self) -> dict[str, Any]:
        """The space as Optuna distributions; ``Space(...)`` of them is the space again."""
        optuna = optuna_module()
        found: dict[str, Any] = {}
        for name, row in self.settings.items():
            if isinstance(row, Choice):
                found[name] = optuna.distributions.CategoricalDistribution(row.labels)
            elif isinstance(row, Whole):
                found[name] = optuna.distributions.IntDistribution(
                    row.low, row.high, row.log, row.step
                )
            else:
                found[name] = optuna.distributions.FloatDistribution(
                    row.low, row.high, row.log, row.step
                )
        return found

    def check(self, estimator: Any) -> None:
        """Raise before any fit when the estimator has no parameter of a name."""
        from difflib import get_close_matches

        known = estimator.get_params(deep=True)
        for name in self.settings:
            parent = name.rpartition("__")[0]
            swapped = any(  # a whole step may be a setting; its own parameters come with it
                parent == other or parent.startswith(other + "__") for other in self.settings
            )
            if name in known or swapped:
                continue
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(sorted(known))}."
            raise DataError(f"{type(estimator).__name__} has no parameter {name!r}; {hint}")

    def to_json(self) -> str:
        """The space as text."""
        if self.function is not None:
            raise DataError("a conditional space is code and has no JSON; write it as a mapping")
        return json.dumps(self._rows())

    @classmethod
    def from_json(cls, text: str) -> Space:
        """The space that :meth:`to_json` wrote."""
        settings: dict[str, Setting] = {}
        for name, row in json.loads(text).items():
            kind = row.pop("kind")
            if row.get("prior"):
                row["prior"] = _thawed(row["prior"])
            if kind == "choice":
                settings[name] = Choice(*row["choices"])
            else:
                settings[name] = Real(**row) if kind == "real" else Whole(**row)
        return cls(settings)

    def _rows(self) -> dict[str, dict[str, Any]]:
        rows: dict[str, dict[str, Any]] = {}
        for name, row in self.settings.items():
            if isinstance(row, Choice):
                rows[name] = {"kind": "choice", "choices": list(row.labels)}
                continue
            fields = {"low": row.low, "high": row.high, "log": row.log, "step": row.step}
            kind = "real" if isinstance(row, Real) else "whole"
            rows[name] = {"kind": kind, **fields}
            if row.prior is not None:
                rows[name]["prior"] = _frozen(row.prior)
        return rows


def _setting(name: str, value: Any) -> Setting:
    if isinstance(value, (Real, Whole, Choice)):
        return _checked(name, value)
    if hasattr(value, "to_internal_repr"):  # an Optuna distribution
        if hasattr(value, "choices"):
            return Choice(*value.choices)
        kind: Any = Whole if isinstance(value.low, int) else Real
        return _checked(name, kind(value.low, value.high, value.log, value.step))
    if hasattr(value, "ppf") and hasattr(value, "dist"):
        return _from_scipy(value)
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value):
        return Choice(*value)
    if hasattr(value, "tolist") and getattr(value, "ndim", 0) == 1 and len(value):
        return Choice(*value.tolist())
    raise DataError(
        f"setting {name!r} is {value!r}; expected Real, Whole, Choice, a list of values, an Optuna "
        "distribution or a frozen scipy distribution"
    )


def _checked(name: str, row: Setting) -> Setting:
    if isinstance(row, Choice):
        if not row.choices:
            raise DataError(f"setting {name!r} has no choices; give at least one value")
        return row
    if not row.low <= row.high or (row.log and row.low <= 0):
        need = "0 < low <= high on a logarithmic scale" if row.log else "low <= high"
        raise DataError(f"setting {name!r} needs {need}, got low={row.low}, high={row.high}")
    return row


def _from_scipy(frozen: Any) -> Setting:
    """Uniform and log-uniform distributions are ranges; other distributions are ranges with a prior."""
    kind = frozen.dist.name
    low, high = (float(end) for end in frozen.support())
    if hasattr(frozen, "pmf"):
        low = low if math.isfinite(low) else float(frozen.ppf(1e-3))
        high = high if math.isfinite(high) else float(frozen.ppf(1 - 1e-3))
        prior = None if kind == "randint" else frozen
        return Whole(int(low), int(high), prior=prior)
    if kind == "uniform":
        return Real(low, high)
    if kind in ("loguniform", "reciprocal"):
        return Real(low, high, log=True)
    low = low if math.isfinite(low) else float(frozen.ppf(1e-3))
    high = high if math.isfinite(high) else float(frozen.ppf(1 - 1e-3))
    return Real(low, high, prior=frozen)


def _frozen(prior: Any) -> dict[str, Any]:
    return {"distribution": prior.dist.name, "args": list(prior.args), "kwds": dict(prior.kwds)}


def _thawed(row: Mapping[str, Any]) -> Any:
    import scipy.stats

    return getattr(scipy.stats, row["distribution"])(*row["args"], **row["kwds"])


def _ask(trial: Any, name: str, row: Setting) -> Any:
    if isinstance(row, Choice):
        return trial.suggest_categorical(name, row.labels)
    if isinstance(row, Whole):
        return trial.suggest_int(name, row.low, row.high, log=row.log, step=row.step)
    return trial.suggest_float(name, row.low, row.high, log=row.log, step=row.step)


def _count(row: Setting) -> float:
    if isinstance(row, Choice):
        return len(row.choices)
    if row.step is None:
        return math.inf if row.high > row.low else 1
    return math.floor((row.high - row.low) / row.step + 1e-9) + 1


def _values(name: str, row: Setting) -> list[Any]:
    if isinstance(row, Choice):
        return list(row.labels)
    count = _count(row)
    if math.isinf(count):
        raise DataError(
            f"setting {name!r} is a continuum and has no grid; give a step or a list of values"
        )
    return [row.low + i * cast(float, row.step or 0) for i in range(int(count))]


__all__ = ["Choice", "Real", "Setting", "Space", "Whole"]
