"""What may help a model that fits too little or too much, found among its own settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from groundstate.compute.display import Displayed
from groundstate.math.stats.interval import Interval
from groundstate.models.tables.table import TablePredictor

Change = Callable[[Any], Any]


@dataclass(frozen=True)
class Remedy(Displayed):
    """One thing to try.

    Attributes
    ----------
    name : such as ``"regularise"``
    command : str
        The one line that tries it.
    estimator : the recipe with the change, or None where rows are what changes
    gap, risk : float or None
        Test minus train risk, and test risk, with the remedy; None when it was not tried.
    change : Interval or None
        Test risk with the remedy minus without, row by row; of more data, what half of it costs
        more, with a minus.
    fell : bool or None
        Whether the test risk fell by more than the error of its change.
    """

    name: str
    command: str
    estimator: Any = None
    gap: float | None = None
    risk: float | None = None
    fell: bool | None = None
    change: Interval | None = None

    def __str__(self) -> str:
        result = {None: "not tried", True: "helped", False: "no measurable gain"}[self.fell]
        return f"{self.name} ({result}): {self.command}"


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _times(factor: float, least: float = 1e-3) -> Change:
    return lambda v: type(v)(max(v * factor, least)) if _number(v) and v >= 0 else None


def _fewer(v: Any) -> Any:
    if isinstance(v, (tuple, list)) and v and all(_number(u) for u in v):
        return type(v)(max(1, int(u) // 2) for u in v)
    return max(1, int(v) // 2) if _number(v) and v > 1 else None


def _more(v: Any) -> Any:
    if isinstance(v, (tuple, list)) and v and all(_number(u) for u in v):
        return type(v)(2 * int(u) for u in v)
    return 2 * int(v) if _number(v) and v >= 1 else None


def _depth(v: Any) -> Any:
    return 3 if v is None else max(1, v // 2) if _number(v) and v > 1 else None


def _leaf(v: Any) -> Any:
    return 5 * v if isinstance(v, int) and v >= 1 else None


def _dropped(v: Any) -> Any:
    return round(min(v + 0.3, 0.8), 3) if _number(v) and v < 0.8 else None


# setting: (remedy, change) against overfitting, and against underfitting
OVERFIT: dict[str, tuple[str, Change]] = {
    "alpha": ("regularise", _times(10.0)),
    "l2": ("regularise", _times(10.0)),
    "weight_decay": ("regularise", _times(10.0)),
    "reg_lambda": ("regularise", _times(10.0, 1.0)),
    "l2_regularization": ("regularise", _times(10.0, 1.0)),
    "C": ("regularise", _times(0.1)),
    "dropout": ("dropout", _dropped),
    "ccp_alpha": ("prune", _times(10.0)),
    "max_depth": ("prune", _depth),
    "min_samples_leaf": ("prune", _leaf),
    "augment": ("augment", lambda v: True if v is False else None),
    "degree": ("smaller model", _fewer),
    "n_components": ("smaller model", _fewer),
    "n_knots": ("smaller model", _fewer),
    "hidden_layer_sizes": ("smaller model", _fewer),
    "hidden": ("smaller model", _fewer),
    "max_leaf_nodes": ("smaller model", _fewer),
    "n_neighbors": ("smaller model", lambda v: 3 * v if _number(v) else None),
}
UNDERFIT: dict[str, tuple[str, Change]] = {
    "alpha": ("regularise less", lambda v: v / 10 if _number(v) and v > 0 else None),
    "C": ("regularise less", lambda v: v * 10.0 if _number(v) else None),
    "degree": ("larger model", lambda v: v + 2 if isinstance(v, int) else None),
    "n_components": ("larger model", _more),
    "n_knots": ("larger model", _more),
    "hidden_layer_sizes": ("larger model", _more),
    "hidden": ("larger model", _more),
    "max_leaf_nodes": ("larger model", _more),
    "max_depth": ("larger model", lambda v: 2 * v if _number(v) else None),
    "n_estimators": ("larger model", _more),
    "n_neighbors": ("larger model", lambda v: max(1, v // 3) if _number(v) and v > 1 else None),
}


def remedies(estimator: Any, overfit: bool, underfit: bool) -> Iterator[Remedy]:
    """Changed copies of a recipe, each by one setting that it has.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> [r.command for r in remedies(DecisionTreeRegressor(), True, False)][1:2]
    ['diagnose(estimator.set_params(ccp_alpha=0.001), X, y)']
    """
    from sklearn.base import clone

    if overfit:
        yield Remedy("more data", "learning_curve(estimator, X, y)")
    if not hasattr(estimator, "get_params"):
        return
    params = estimator.get_params(deep=True)
    for wanted, table in ((overfit, OVERFIT), (underfit, UNDERFIT)):
        for name, value in sorted(params.items()) if wanted else ():
            found = table.get(name.rsplit("__", 1)[-1])
            new = None if found is None else found[1](value)
            if found is None or new is None or new == value:
                continue
            command = f"diagnose(estimator.set_params({name}={new!r}), X, y)"
            yield Remedy(found[0], command, clone(estimator).set_params(**{name: new}))
    yield from _other_models(estimator, overfit, underfit)


def _other_models(estimator: Any, overfit: bool, underfit: bool) -> Iterator[Remedy]:
    """Another last step, where the one there is, a regressor, has nothing to turn."""
    from sklearn.base import clone, is_regressor

    steps = getattr(estimator, "steps", None)
    name, last = steps[-1] if steps else ("", estimator)
    if isinstance(estimator, TablePredictor):
        name, last = "estimator", estimator.estimator
    settings = {setting.rsplit("__", 1)[-1] for setting in last.get_params(deep=True)}
    if not is_regressor(last) or settings & (set(OVERFIT) | set(UNDERFIT)):
        return
    from groundstate.models.linear.least_squares.ridge import Ridge

    if overfit:
        if name:
            changed = clone(estimator).set_params(**{name: Ridge()})
            command = f"diagnose(estimator.set_params({name}=Ridge()), X, y)"
        else:
            changed, command = Ridge(), "diagnose(Ridge(), X, y)"
        yield Remedy("regularise", command, changed)
    if underfit and not name:
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import PolynomialFeatures

        yield Remedy(
            "larger model",
            "diagnose(make_pipeline(PolynomialFeatures(3), estimator), X, y)",
            make_pipeline(PolynomialFeatures(3), clone(estimator)),
        )
