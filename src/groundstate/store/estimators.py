"""Estimators: constructor parameters plus what ``fit`` learned."""

from __future__ import annotations

from inspect import getattr_static
from typing import Any

from scipy.sparse import issparse

from groundstate.errors import StoreError


class Estimators:
    r"""Parameters from ``get_params(deep=False)`` and learned attributes, whose names end in ``_``.

    Two class attributes refine this: ``_store_private``, names of further attributes to keep, and
    ``_store_skip``, names of parameters or attributes to leave out (they come back as defaults).
    Callbacks watch a fit and are no part of the model: the parameter ``callbacks`` is left out.
    A parameter ``device`` follows the tensors to where they are loaded. A class that kept something
    else has a static method ``upgrade_learned(dict) -> dict`` from stored attributes to present ones.
    """

    def parts(self, value: Any, where: str) -> dict[str, dict[str, Any]]:
        skip = _names(type(value), "_store_skip") | {"callbacks"}
        params = {k: v for k, v in value.get_params(deep=False).items() if k not in skip}
        learned = {
            name: content
            for name, content in sorted(vars(value).items())
            if _is_learned(type(value), name) and name not in skip and name not in params
        }
        return {"params": params, "learned": learned}

    def build(self, cls: Any, parts: dict[str, dict[str, Any]], device: str) -> Any:
        params = dict(parts["params"])
        # None and "auto" find the tensors by themselves
        if device != "stored" and params.get("device") not in (None, "auto"):
            params["device"] = device
        estimator = cls(**params)
        upgrade = getattr(cls, "upgrade_learned", dict)  # what earlier versions kept otherwise
        for name, content in upgrade(parts["learned"]).items():
            if not _is_learned(cls, name) or callable(getattr(cls, name, None)):
                raise StoreError(f"{cls.__name__} has no learned attribute {name!r:.40}")
            if hasattr(getattr_static(cls, name, None), "__set__") and not issparse(content):
                continue  # read from other parts of the estimator, as an older version did not
            vars(estimator)[name] = content
        return estimator


def _is_learned(cls: type, name: str) -> bool:
    if name.endswith("_") and not name.startswith("_"):
        return True
    if cls.__module__.startswith("sklearn."):
        # its estimators keep part of what they learned in undeclared private attributes
        return name.startswith("_") and not name.startswith(("__", "_skl_", "_parent"))
    return name in _names(cls, "_store_private")


def _names(cls: type, attribute: str) -> frozenset[str]:
    """Names declared by the class and everything it inherits from."""
    return frozenset(name for base in cls.__mro__ for name in vars(base).get(attribute, ()))
