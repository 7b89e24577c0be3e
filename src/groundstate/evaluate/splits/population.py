"""Fits of one recipe to many choices of rows and seeds, as one program where the model has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.evaluate.rows import Floats, n_rows, take

_NUMBERS = 2**26  # weights held at once: members times rows


def fit_together(
    estimator: Any,
    X: Any,
    y: Any,
    rows: Sequence[NDArray[np.intp]],
    params: Sequence[Mapping[str, Any]] | None = None,
    weight: Floats | None = None,
) -> list[Any] | None:
    r"""Clones fitted to ``X[rows[p]], y[rows[p]]`` for every p, trained as one program.

    Member p minimises :math:`\sum_i w_i m_{pi} L_i`, with :math:`m_{pi}` how often row i is among its
    rows; the result is that of fits one after the other. The steps before the network in a pipeline
    are fitted to each choice of rows, once where choices are equal.

    Parameters
    ----------
    estimator : unfitted; an estimator of networks, or a pipeline that ends in one
    X, y : all rows
    rows : P choices of rows; a row that is there twice counts twice
    params : settings of each member, as for ``set_params``
    weight : ``(N,)``, multiplies

    Returns
    -------
    P fitted clones, or None where the estimator has no such program or the choices do not suit it
    (a class that some do not have); fit them one after the other then

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> x = np.arange(6.0)[:, None]
    >>> fit_together(Ridge(), x, x[:, 0], [np.arange(3), np.arange(3, 6)]) is None
    True
    """
    own = [{}] * len(rows) if params is None else list(params)
    if len(rows) < 2 or y is None:
        return None
    target = np.asarray(y)
    if _lacks_labels(estimator, target, rows):
        return None
    steps = getattr(estimator, "steps", None)
    if steps is None:
        if getattr(estimator, "_fit_population", None) is None:
            return None
        return _in_parts(estimator, X, target, rows, own, weight)
    if (
        weight is not None
        or len(steps) < 2
        or getattr(steps[-1][1], "_fit_population", None) is None
    ):
        return None
    return _pipelines(estimator, X, target, rows, own)


def _in_parts(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    rows: Sequence[NDArray[np.intp]],
    params: Sequence[Mapping[str, Any]],
    weight: Floats | None,
) -> list[Any] | None:
    """As many members at a time as their weights have room."""
    n = n_rows(X)
    size = max(2, _NUMBERS // max(1, n))
    same = weight is None and all(r is rows[0] for r in rows)
    if same:  # other seeds on the same rows need no weights
        X, y = take(X, rows[0]), y[rows[0]]
    models: list[Any] = []
    for at in range(0, len(rows), size):
        chosen = slice(at, at + size)
        counts: Floats | None = None
        if not same:
            counts = np.stack([np.bincount(r, minlength=n) for r in rows[chosen]]).astype(
                np.float64
            )
            counts = counts if weight is None else counts * weight
        found = estimator._fit_population(X, y, counts, list(params[chosen]))
        if found is None:
            return None
        models += found
    return models


def _pipelines(
    pipeline: Any,
    X: Any,
    y: NDArray[Any],
    rows: Sequence[NDArray[np.intp]],
    params: Sequence[Mapping[str, Any]],
) -> list[Any] | None:
    """Preparation fitted to each choice of rows; then the networks on all prepared rows."""
    from sklearn.base import clone

    last, network = pipeline.steps[-1]
    if getattr(pipeline, "memory", None) is not None or getattr(pipeline, "transform_input", None):
        return None
    before: list[dict[str, Any]] = []
    inner: list[dict[str, Any]] = []
    for settings in params:
        head = f"{last}__"
        inner.append({k[len(head) :]: v for k, v in settings.items() if k.startswith(head)})
        before.append({k: v for k, v in settings.items() if not k.startswith(head)})
        if last in settings or "steps" in settings:  # another network, not another setting
            return None
    prepared: list[tuple[Any, Any, NDArray[np.intp]]] = []  # recipe, its rows, where they lie
    of: list[int] = []
    blocks: list[Any] = []
    offset = 0
    seen: list[tuple[NDArray[np.intp], dict[str, Any]]] = []
    for chosen, settings in zip(rows, before, strict=True):
        at = next((i for i, (r, s) in enumerate(seen) if r is chosen and s == settings), None)
        if at is None:
            recipe = clone(pipeline).set_params(**settings)
            block = recipe[:-1].fit_transform(take(X, chosen), y[chosen])
            if not isinstance(block, np.ndarray) or len(block) != len(chosen):
                return None
            at = len(seen)
            seen.append((chosen, settings))
            prepared.append((recipe, chosen, np.arange(offset, offset + len(block))))
            blocks.append(block)
            offset += len(block)
            if offset * len(rows) > _NUMBERS:
                return None
        of.append(at)
    labels = np.concatenate([y[chosen] for _, chosen, _ in prepared])
    places = [prepared[i][2] for i in of]
    if len(prepared) == 1:
        places = [places[0]] * len(places)
    models = _in_parts(network, np.concatenate(blocks), labels, places, inner, None)
    if models is None:
        return None
    fitted = []
    for i, model in zip(of, models, strict=True):
        own = clone(pipeline).set_params(**seen[i][1])
        own.steps = [*prepared[i][0].steps[:-1], (last, model)]
        fitted.append(own)
    return fitted


def _lacks_labels(estimator: Any, y: NDArray[Any], rows: Sequence[NDArray[np.intp]]) -> bool:
    """Whether some choice has not all classes: its fit would not know them."""
    from sklearn.base import is_classifier

    if not is_classifier(estimator) or y.ndim != 1:
        return False
    classes, codes = np.unique(y, return_inverse=True)
    distinct = {id(chosen): chosen for chosen in rows}.values()
    return any((np.bincount(codes[r], minlength=len(classes)) == 0).any() for r in distinct)


__all__ = ["fit_together"]
