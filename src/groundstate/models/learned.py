"""Learned attributes that are θ itself: read from the energy, written to the energy.

``model.coef_[:] = 0`` and ``model.coef_ = w`` both change what is predicted. An attribute that is a
part of θ is a view of it; one that is computed from θ writes back through its inverse; one that has
none refuses, and its error names what to set instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from torch import Tensor

STRIDED = torch.strided


class Linked(np.ndarray):
    """An array computed from θ: writing to it calls ``write``, or is refused with ``reason``."""

    _write: Callable[[NDArray[Any]], None] | None = None
    _reason = "it is part of another array: write to that one"

    def __new__(cls, values: Any, write: Any, reason: str) -> Linked:
        out = np.array(values).view(cls)
        out._write, out._reason = write, reason
        out.flags.writeable = False
        return out

    def __array_finalize__(self, parent: Any) -> None:
        self._reason = getattr(parent, "_reason", Linked._reason)

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.flags.writeable:  # a copy, which is nobody's but its owner's
            super().__setitem__(key, value)
            return
        if self._write is None:
            raise ValueError(self._reason)
        new = np.array(self, subok=False)
        new[key] = value
        self._write(new)
        self.flags.writeable = True
        super().__setitem__(..., new)
        self.flags.writeable = False

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        plain = [np.asarray(v) if isinstance(v, Linked) else v for v in inputs]
        (out,) = settings.pop("out", (None,))
        if not isinstance(out, Linked):
            settings |= {} if out is None else {"out": out}
            return getattr(ufunc, method)(*plain, **settings)
        out[...] = getattr(ufunc, method)(*plain, **settings)
        return out


class Learned:
    """A descriptor: an attribute of a fitted estimator as a function of the estimator.

    Parameters
    ----------
    read : the value as a tensor, where possible a view of a parameter or buffer of the energy
    write : sets θ from a new value, where ``read`` gives no view
    instead : what to do where there is neither view nor ``write``
    """

    def __init__(
        self,
        read: Callable[[Any], Any],
        write: Callable[[Any, Tensor], None] | None = None,
        *,
        instead: str = "set what it is computed from in model.energy_",
    ) -> None:
        self.read, self.write, self.instead = read, write, instead

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def _reason(self, model: Any) -> str:
        if self.write is not None:
            return (
                f"write to {self.name} itself: model.{self.name}[...] = values, or assign an array"
            )
        return f"{self.name} is computed from what {type(model).__name__} learned; {self.instead}"

    def __get__(self, model: Any, owner: Any = None) -> Any:
        if model is None:
            return self
        self._check_fitted(model)
        kept = vars(model).get(self.name)
        if issparse(kept):
            return kept
        with torch.no_grad():
            values = self.read(model)
        if values is None:
            return 0.0  # there is no such part, as with fit_intercept=False
        if values.ndim == 0:
            return values.item()
        view = _is_view(values, model.energy_)
        if view and values.device.type == "cpu":
            return values.detach().numpy()
        into = (lambda new: self._store(model, new)) if view or self.write is not None else None
        return Linked(values.detach().cpu().numpy(), into, self._reason(model))

    def __set__(self, model: Any, value: Any) -> None:
        self._check_fitted(model)
        dense = value.toarray() if issparse(value) else value
        self._store(model, dense)
        vars(model).pop(self.name, None)
        if issparse(value):
            kept = csr_matrix(value)
            kept.data.flags.writeable = False  # θ would not hear of it
            vars(model)[self.name] = kept

    def _check_fitted(self, model: Any) -> None:
        if "energy_" not in vars(model):
            raise AttributeError(
                f"{type(model).__name__} has {self.name} after fit, and is not fitted yet"
            )

    @torch.no_grad()
    def _store(self, model: Any, value: Any) -> None:
        old = self.read(model)
        if old is None:
            if np.any(value):
                raise ValueError(
                    f"{type(model).__name__} was fitted without {self.name}; fit it with "
                    "fit_intercept=True to have one"
                )
            return
        given = value if isinstance(value, Tensor) else torch.from_numpy(np.array(value))
        new = given.to(old)
        if new.shape != old.shape and new.numel() != old.numel():
            raise ValueError(
                f"{self.name} has shape {tuple(old.shape)}, got an array of {tuple(new.shape)}"
            )
        new = new.reshape(old.shape)
        if _is_view(old, model.energy_):
            old.copy_(new)
        elif self.write is not None:
            self.write(model, new)
        else:
            raise AttributeError(self._reason(model))


def _is_view(values: Tensor, energy: Any) -> bool:
    """Whether a tensor is part of a parameter or buffer, so that writing to it changes θ."""
    at = values.untyped_storage().data_ptr()
    parts = (*energy.parameters(), *energy.buffers())
    return any(at == part.untyped_storage().data_ptr() for part in parts if part.layout == STRIDED)


class LearnedLayers(Learned):
    """A list of learned arrays, one for each layer; ``read`` gives a list of views of θ."""

    def __get__(self, model: Any, owner: Any = None) -> Any:
        if model is None:
            return self
        self._check_fitted(model)
        return Layers(self, model)

    def __set__(self, model: Any, value: Any) -> None:
        self._check_fitted(model)
        if len(value) != len(self._parts(model)):
            raise ValueError(
                f"{self.name} holds {len(self._parts(model))} arrays, one for each layer, got "
                f"{len(value)}"
            )
        for k, part in enumerate(value):
            _layer(self, k).__set__(model, part)

    def _parts(self, model: Any) -> Any:
        return self.read(model)


class Layers(list[Any]):
    """The arrays of all layers; one that is put in the place of another is written to θ."""

    def __init__(self, learned: LearnedLayers, model: Any) -> None:
        self._learned, self._model = learned, model
        super().__init__(self._read())

    def _read(self) -> list[Any]:
        parts = range(len(self._learned._parts(self._model)))
        return [_layer(self._learned, k).__get__(self._model) for k in parts]

    def __setitem__(self, k: Any, value: Any) -> None:
        new = list(self)
        new[k] = value
        self._learned.__set__(self._model, new)
        super().__setitem__(slice(None), self._read())

    def __reduce__(self) -> Any:  # a copy is a list, and nobody's but its owner's
        return list, (list(self),)


def _layer(layers: LearnedLayers, k: int) -> Learned:
    one = Learned(lambda model: layers._parts(model)[k], instead=layers.instead)
    one.name = f"{layers.name}[{k}]"
    return one
