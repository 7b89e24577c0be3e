"""Which models take part: those the registry lists for the task, and a dummy to beat."""

from __future__ import annotations

from typing import Any

from groundstate.errors import Unsupported
from groundstate.registry import models as registered

DUMMY = "dummy"
ROLES = {"classification": "classifier", "regression": "regressor"}


def chosen_models(
    names: str, task: str, device: str | None = None, n_rows: int = 0
) -> dict[str, Any]:
    """Unfitted candidates by name; the dummy is always among them, last.

    Parameters
    ----------
    names : ``"auto"`` for the registered models with the role of the task that need no settings, or
        names with commas
    task : ``"classification"`` or ``"regression"``
    device : given to every model that takes one
    n_rows : size of the table; ``"auto"`` leaves out models that declare a smaller limit

    Examples
    --------
    >>> list(chosen_models("Ridge", "regression"))
    ['Ridge', 'dummy']
    """
    fitting = {
        row.name: row for row in registered if row.role == ROLES[task] and takes_any_number(row.obj)
    }
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        raise Unsupported(f"name at least one model, or auto; there are {', '.join(fitting)}")
    if wanted == ["auto"]:
        wanted = [
            row.name
            for row in fitting.values()
            if row.auto and (row.max_rows is None or n_rows <= row.max_rows)
        ]
    found: dict[str, Any] = {}
    for name in wanted:
        if name == DUMMY:
            continue
        if name not in fitting:
            row = registered[name]  # an unknown name raises, with the nearest known one
            reason = f"{name} is a {row.role} and the task is {task}"
            if row.role == ROLES[task]:
                reason = f"{name} needs counts or codes, and prepared columns are centred numbers"
            raise Unsupported(f"{reason}; choose among {', '.join(fitting)}")
        found[name] = placed(fitting[name].obj(), device)
    return {**found, DUMMY: dummy(task)}


def takes_any_number(model: Any) -> bool:
    """Whether a model class takes negative numbers, which prepared columns hold; by its own tag."""
    from sklearn.utils import get_tags

    return not get_tags(model()).input_tags.positive_only


def placed(model: Any, device: str | None) -> Any:
    """The model with its ``device`` set, where it has one."""
    if device is not None and "device" in model.get_params(deep=False):
        model.set_params(device=device)
    return model


def dummy(task: str) -> Any:
    """What every model has to beat: the commonest class, or the mean."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    return DummyClassifier() if task == "classification" else DummyRegressor()


__all__ = ["DUMMY", "ROLES", "chosen_models", "dummy", "placed", "takes_any_number"]
