"""A network for rows of some kind, from a name, a module or a function."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, get_type_hints

from torch import nn

from groundstate.compute.random import Key, seeded
from groundstate.nn import architectures


def make_network(
    network: Any, sizes: Mapping[str, Any], given: Mapping[str, Any], kind: str, key: Key
) -> nn.Module:
    """The network that an estimator was asked for.

    Parameters
    ----------
    network : name of an architecture, module (copied with its weights), class or function
    sizes : what the data say, such as ``in_channels`` and ``num_classes``; those that the constructor
        does not take are left out
    given : further arguments, which come before the sizes
    kind : of the rows; an architecture by name must be for these
    key : of the initial weights

    Examples
    --------
    >>> net = make_network("cnn", {"in_channels": 1, "num_classes": 3}, {}, "image", Key.of(0))
    >>> sum(p.numel() for p in net.parameters()) > 0
    True
    """
    if isinstance(network, nn.Module):
        if given:
            raise ValueError(
                f"the settings {', '.join(given)} belong to a constructor, but the network is a "
                f"finished {type(network).__name__}; pass its class or a name instead"
            )
        return deepcopy(network)
    if isinstance(network, str):
        return _by_name(network, sizes, given, kind, key)
    if not callable(network):
        raise TypeError(
            f"network must be a name, a torch module, a class or a function that makes one, got "
            f"{network!r}"
        )
    with seeded(key):  # the initial weights of torch's layers know no other generator
        made = network(**_arguments(network, sizes, given))
    if not isinstance(made, nn.Module):
        raise TypeError(f"{network!r} made {type(made).__name__}, a torch module is needed")
    return made


def _by_name(
    name: str, sizes: Mapping[str, Any], given: Mapping[str, Any], kind: str, key: Key
) -> nn.Module:
    known = [row.name for row in architectures.architectures if row.kind == kind]
    if name not in known:
        own = ", ".join(known) or "none"
        raise ValueError(f"network={name!r} is no architecture for {kind} rows; there are: {own}")
    make = architectures.architectures[name].obj
    return architectures.create(name, generator=key.torch(), **_arguments(make, sizes, given))


def _arguments(make: Any, sizes: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    parameters = _parameters(make)
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    unknown = [] if takes_all else [name for name in given if name not in parameters]
    if unknown:
        raise ValueError(
            f"{getattr(make, '__name__', make)} takes no {', '.join(map(repr, unknown))}; it takes "
            f"{', '.join(parameters)}"
        )
    return {**{k: v for k, v in sizes.items() if takes_all or k in parameters}, **given}


def _parameters(make: Any) -> dict[str, inspect.Parameter]:
    """What a constructor takes; one that hands all on, ``f(**settings) -> Net``, takes what Net does."""
    found = dict(inspect.signature(make).parameters)
    if not inspect.isfunction(make) or not any(p.kind is p.VAR_KEYWORD for p in found.values()):
        return found
    made = get_type_hints(make).get("return")
    if not isinstance(made, type) or made is nn.Module:
        return found
    own = {name: p for name, p in found.items() if p.kind is not p.VAR_KEYWORD}
    return {**inspect.signature(made).parameters, **own}
