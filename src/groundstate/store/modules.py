"""Torch modules: constructor arguments plus ``state_dict``."""

from __future__ import annotations

import contextlib
import inspect
from collections import OrderedDict
from typing import Any

from groundstate.errors import StoreError
from groundstate.store.archive import brief

_CONTAINERS = ("Sequential", "ModuleList", "ModuleDict")
_NAMES = """
Sequential ModuleList ModuleDict Identity Flatten Unflatten Linear Bilinear Embedding
Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Upsample PixelShuffle
MaxPool1d MaxPool2d AvgPool1d AvgPool2d AdaptiveAvgPool1d AdaptiveAvgPool2d
BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm LayerNorm RMSNorm InstanceNorm1d InstanceNorm2d
Dropout Dropout1d Dropout2d AlphaDropout ELU GELU GLU Hardtanh LeakyReLU LogSigmoid Mish PReLU
ReLU ReLU6 SELU SiLU Sigmoid Softmax LogSoftmax Softplus Softsign Tanh Threshold
"""
_LAYERS = frozenset(_NAMES.split())


def torch_layer(name: str) -> type | None:
    """A layer of ``torch.nn`` by name, when it is on the list."""
    if name not in _LAYERS:
        return None
    from torch import nn

    layer: type = getattr(nn, name)
    return layer


class Modules:
    r"""Rebuild a module by calling its class with the same arguments, then load its tensors.

    The arguments come from the method ``config() -> dict`` where the class has one (key ``"*"``
    for positional arguments), else from attributes that have the names of the constructor's
    parameters, as torch's own layers do. A class whose arguments changed has a static method
    ``upgrade_config(dict) -> dict`` from stored arguments to present ones.
    """

    def parts(self, value: Any, where: str) -> dict[str, dict[str, Any]]:
        state = {"training": value.training, "tensors": dict(value.state_dict())}
        return {"config": _config(value, where), "state": state}

    def build(self, cls: Any, parts: dict[str, dict[str, Any]], device: str) -> Any:
        import torch

        from groundstate.store.shapes import shapes_only

        tensors = parts["state"]["tensors"]
        with contextlib.suppress(NotImplementedError, RuntimeError), shapes_only():
            # costs no memory: a file cannot ask for a network larger than the tensors it brings
            _check(cls, _roomy(_make(cls, parts["config"]), tensors).state_dict(), tensors)
        with torch.random.fork_rng(devices=[]):  # initial weights are overwritten, draws undone
            module = _roomy(_make(cls, parts["config"]), tensors)
        _check(cls, module.state_dict(), tensors)
        for stored in tensors.values():
            module.to(device=getattr(stored, "device", "cpu"))
            break
        for name, own in module.state_dict(keep_vars=True).items():
            stored = tensors[name]
            if isinstance(own, torch.Tensor):
                own.data = own.data.to(device=stored.device, dtype=stored.dtype)
        module.load_state_dict(tensors)
        return module.train(parts["state"]["training"] is True)


def _make(cls: Any, config: dict[str, Any]) -> Any:
    upgrade = getattr(cls, "upgrade_config", dict)  # arguments that earlier versions stored
    arguments = dict(upgrade(config))
    positional = arguments.pop("*", ())
    if cls.__name__ == "Sequential" and len(positional) == 1 and isinstance(positional[0], dict):
        positional = [OrderedDict(positional[0])]
    return cls(*positional, **arguments)


def _roomy(module: Any, tensors: dict[str, Any]) -> Any:
    """A module with buffers that it makes while it learns; they take no more room than the file."""
    make_room = getattr(module, "make_room", None)
    if callable(make_room):
        make_room(tensors)
    return module


def _check(cls: type, own: dict[str, Any], stored: dict[str, Any]) -> None:
    if set(own) != set(stored):
        odd = sorted(set(own) ^ set(stored))[0]
        raise StoreError(f"{cls.__name__} and the file disagree about the tensor {odd!r:.60}")
    for name, tensor in own.items():
        expected, found = getattr(tensor, "shape", None), getattr(stored[name], "shape", None)
        if expected != found:
            raise StoreError(
                f"{cls.__name__}.{name:.60} should have shape {expected}, "
                f"the file has {brief(found)}"
            )


def _config(module: Any, where: str) -> dict[str, Any]:
    if callable(getattr(module, "config", None)):
        config: dict[str, Any] = module.config()
        return config
    cls = type(module)
    if cls.__module__.startswith("torch.nn") and cls.__name__ in _CONTAINERS:
        return {"*": [dict(module.items())]} if cls.__name__ == "ModuleDict" else _children(module)
    arguments: dict[str, Any] = {}
    for name, parameter in inspect.signature(cls.__init__).parameters.items():
        if name in ("self", "device", "dtype"):
            continue
        missing = not hasattr(module, name)
        if parameter.kind is parameter.VAR_KEYWORD:
            arguments |= getattr(module, name, {})
        elif missing and parameter.kind is not parameter.VAR_POSITIONAL:
            if parameter.default is parameter.empty:
                raise StoreError(
                    f"cannot store {where}: {cls.__name__} does not tell how it was made; add a "
                    f"method config() that returns its constructor arguments (no {name!r} found)"
                )
        elif parameter.kind is parameter.VAR_POSITIONAL:
            arguments["*"] = list(getattr(module, name, ()))
        else:
            arguments[name] = _argument(getattr(module, name), parameter.default)
    return arguments


def _children(module: Any) -> dict[str, Any]:
    if type(module).__name__ == "ModuleList":
        return {"*": [list(module)]}
    names = list(module._modules)
    if names == [str(i) for i in range(len(names))]:
        return {"*": list(module)}
    return {"*": [dict(module._modules)]}  # Sequential(OrderedDict(...)): named layers


def _argument(value: Any, default: Any) -> Any:
    import torch

    if isinstance(default, bool) and (value is None or isinstance(value, torch.Tensor)):
        return value is not None  # Linear(bias=True) keeps the bias itself under that name
    return value
