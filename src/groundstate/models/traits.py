"""What a model needs and can do, declared on its class and read from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.models.settings import Setting

_OPEN: Any = object()  # a trait that a class leaves to the classes it inherits from


@dataclass(frozen=True)
class Cost:
    r"""About how long a fit takes on one idle core, for whoever has to plan with a clock.

    .. math:: s + u\,(n/1000)^r (d/10)^c (k/2)^q (\max(w, 1)/30)^p \quad\text{seconds}

    Attributes
    ----------
    unit : u, seconds for 1,000 rows of 10 numbers (and 30 words) and two classes, without the start
    rows, columns, classes, words : r, c, q, p
    start : s

    Examples
    --------
    >>> Cost(0.5, rows=2, columns=0).seconds(2000, 10, 2)
    2.01
    """

    unit: float
    rows: float = 1.0
    columns: float = 1.0
    classes: float = 0.0
    words: float = 0.0
    start: float = 0.01

    def seconds(self, n: int, d: int, k: int, w: float = 30.0) -> float:
        """Seconds for n rows of d numbers, k classes and texts of w words."""
        size = (n / 1000) ** self.rows * (d / 10) ** self.columns * (k / 2) ** self.classes
        return self.start + self.unit * size * (max(w, 1.0) / 30) ** self.words


@dataclass(frozen=True, kw_only=True)
class Traits:
    """Declarations of a class, ``traits = Traits(...)``; what it leaves out it inherits.

    Attributes
    ----------
    space : settings worth searching, by name; those that an estimator does not have are left out
    single_columns : it asks about one column at a time, so that no scale matters; None: unknown
    scaled_target : a regressor that learns badly from a target far from zero or not of unit scale
    linear_in_y : a fit to the same rows is a linear function of the target
    leverage : ``(fitted, X)`` to the diagonal of S in :math:`\\hat y = Sy`, with
        :math:`e_i/(1 - S_{ii})` the errors of leaving rows out; ``NotApplicable`` for settings
        that are not linear in y
    strength : the parameter of a smooth penalty of ``coef_``, whose hypergradient is known
    steps : the parameter that counts the steps of ``warm_start``; None: by common names
    counts_all_steps : with ``warm_start`` it counts all steps, not those from here on
    summed : ``estimators_`` are terms of a sum, no members with answers of their own
    prepares : its ``estimator`` learns behind a preparation of the columns that it fits itself
    compared_with : settings with which a study tries it as well, by what they are called there
    program : ``(estimator, X, y, weights, settings)`` to fitted clones, many as one; it raises
        ``NotApplicable`` for what it cannot take
    cost : how long a fit takes, about; None: unknown
    words : the parameter that is told which columns hold the words of a text in their order, of a
        model that reads them; None: texts reach it as terms or as a few numbers
    preset : parameters with which a study tries it unasked, where its defaults, which are those of
        other libraries, do not suit columns of unit scale

    Examples
    --------
    >>> from groundstate.models.settings import Whole
    >>> class Model:
    ...     traits = Traits(single_columns=True, space={"depth": Whole(1, 9)})
    >>> class Special(Model):
    ...     traits = Traits(steps="depth")
    >>> traits_of(Special).single_columns, traits_of(Special()).steps, traits_of(int) is FOREIGN
    (True, 'depth', True)
    """

    space: Mapping[str, Setting] | None = _OPEN
    single_columns: bool | None = _OPEN
    scaled_target: bool = _OPEN
    linear_in_y: bool = _OPEN
    leverage: Callable[[Any, Any], NDArray[np.float64]] | None = _OPEN
    strength: str | None = _OPEN
    steps: str | None = _OPEN
    counts_all_steps: bool | None = _OPEN
    summed: bool | None = _OPEN
    prepares: bool = _OPEN
    compared_with: Mapping[str, Mapping[str, Any]] = _OPEN
    program: Callable[..., list[Any]] | None = _OPEN
    cost: Cost | None = _OPEN
    words: str | None = _OPEN
    preset: Mapping[str, Any] | None = _OPEN


FOREIGN = Traits(  # of classes that declare nothing, such as another library's
    space=None, single_columns=None, scaled_target=False, linear_in_y=False, leverage=None,
    strength=None, steps=None, counts_all_steps=None, summed=None, prepares=False, compared_with={},
    program=None, cost=None, words=None, preset=None,
)  # fmt: skip


def traits_of(model: Any) -> Traits:
    """The traits of a class or an estimator, its own before those it inherits."""
    return _merged(model if isinstance(model, type) else type(model))


@cache
def _merged(cls: type) -> Traits:
    found = FOREIGN
    for one in reversed(cls.__mro__):
        own = vars(one).get("traits")
        if isinstance(own, Traits):
            given = {f.name: getattr(own, f.name) for f in fields(Traits)}
            found = replace(found, **{k: v for k, v in given.items() if v is not _OPEN})
    return found


def last_step(estimator: Any) -> Any:
    """What learns in the end: the last step of a pipeline, or the estimator itself."""
    steps = getattr(estimator, "steps", None)
    return steps[-1][1] if steps else estimator


def inner_of(estimator: Any) -> Any:
    """What a pipeline, a bag or a crowd asks its questions of; None where it is it itself."""
    last = last_step(estimator)
    return getattr(estimator, "estimator", None) if last is estimator else last


def asks_single_columns(estimator: Any) -> bool:
    """Whether a model asks about one column at a time, so that no scale matters.

    Of a model that does not declare it, those do that take missing values by their tags, as the
    trees of other libraries.

    >>> from groundstate import DecisionTreeClassifier, LogisticRegression
    >>> from groundstate.models.traits import asks_single_columns
    >>> asks_single_columns(DecisionTreeClassifier()), asks_single_columns(LogisticRegression())
    (True, False)
    """
    inner = inner_of(estimator)
    if inner is not None:
        return asks_single_columns(inner)
    declared = traits_of(estimator).single_columns
    if declared is not None:
        return declared
    from sklearn.utils import get_tags

    return bool(get_tags(estimator).input_tags.allow_nan)


def takes_sparse_rows(estimator: Any) -> bool:
    """Whether a supervised model learns from sparse rows as they are, such as the terms of texts.

    Its ``_accept_sparse`` declares it; of a model of another library its tags do, unless it asks
    about one column at a time.

    >>> from groundstate import LogisticRegression, MLPClassifier, RandomForestClassifier
    >>> from groundstate.models.traits import takes_sparse_rows
    >>> [takes_sparse_rows(m()) for m in (LogisticRegression, MLPClassifier, RandomForestClassifier)]
    [True, False, False]
    """
    from sklearn.base import is_classifier, is_regressor
    from sklearn.utils import get_tags

    inner = inner_of(estimator)
    if inner is not None:
        return takes_sparse_rows(inner)
    if not (is_classifier(estimator) or is_regressor(estimator)) or asks_single_columns(estimator):
        return False
    declared = getattr(estimator, "_accept_sparse", None)
    if declared is not None:
        return bool(declared == "csr")
    return bool(get_tags(estimator).input_tags.sparse)


# distributions of positive, whole or bounded values, which a shift would leave
_UNMOVED = frozenset({
    "poisson", "negative_binomial", "gamma", "exponential", "lognormal", "beta", "von_mises",
})  # fmt: skip


def asks_scaled_target(estimator: Any) -> bool:
    """Whether a regressor learns badly from a target that is far from zero or not of unit scale.

    Networks, whose first outputs are near zero, and kernel machines and Gaussian processes without
    an intercept or a centring of their own declare it. Losses of counts and of positive values are
    never moved, nor is the target of a model that declares nothing.

    >>> from groundstate import GaussianProcessRegressor, MLPRegressor, Ridge
    >>> from groundstate.models.traits import asks_scaled_target
    >>> asks_scaled_target(MLPRegressor()), asks_scaled_target(MLPRegressor(loss="gamma"))
    (True, False)
    >>> asks_scaled_target(GaussianProcessRegressor(normalize_y=True)), asks_scaled_target(Ridge())
    (False, False)
    """
    from sklearn.base import is_regressor

    inner = inner_of(estimator)
    if inner is not None:
        return asks_scaled_target(inner)
    if not traits_of(estimator).scaled_target or not is_regressor(estimator):
        return False
    loss = getattr(estimator, "loss", None)
    name = str(getattr(loss, "name", loss))  # a head knows its name
    return name not in _UNMOVED and not getattr(estimator, "normalize_y", False)
