r"""Architectures by name: networks for images, sequences, text, graphs and coordinates.

A network, or a function that makes one, registers itself in its own file::

    @architecture("lenet", kind="image", shape=(1, 28, 28), inputs=rows(1, 28, 28))
    def lenet(num_classes: int = 10, ...) -> nn.Module: ...

and is then found by ``create``, ``list``, ``describe``, by estimators (``network="lenet"``) and by the
contract test of all architectures.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any, TypeVar

import torch
from torch import nn

from groundstate.nn.inspect.draw import Drawing
from groundstate.nn.inspect.draw_layers import draw_layers
from groundstate.nn.inspect.summary import Summary, summary
from groundstate.registry import Registry, Row

KINDS = ("image", "sequence", "text", "graph", "coordinate")
F = TypeVar("F", bound=Callable[..., nn.Module])
Inputs = Callable[[torch.Generator], tuple[Any, ...]]


@dataclass(frozen=True, kw_only=True)
class ArchitectureRow(Row):
    """A network by name.

    Attributes
    ----------
    kind : what its rows are, one of ``KINDS``
    shape : of one example of the default network, for its layer table; None where there is none
    small : settings of a small instance, for tests
    inputs : from a generator to the smallest legal arguments of that instance
    """

    kind: str
    shape: tuple[int, ...] | None = None
    small: Mapping[str, Any] = field(default_factory=dict)
    inputs: Inputs | None = field(default=None, repr=False, compare=False)


architectures = Registry("architecture", ArchitectureRow, "groundstate.nn")


def rows(*shape: int, n: int = 2) -> Inputs:
    """Example arguments: n normal rows of this shape."""
    return lambda generator: (torch.randn(n, *shape, generator=generator),)


def tokens(vocabulary: int, length: int, n: int = 2) -> Inputs:
    """Example arguments: n rows of token numbers ``(n, length)``."""
    return lambda generator: (torch.randint(vocabulary, (n, length), generator=generator),)


def architecture(
    name: str | None = None,
    *,
    kind: str,
    inputs: Inputs,
    shape: tuple[int, ...] | None = None,
    small: Mapping[str, Any] | None = None,
) -> Callable[[F], F]:
    """Register a network class, or a function that makes a network.

    Parameters
    ----------
    name : by which it is created; by default the name of the object
    kind : one of ``KINDS``
    inputs : the smallest legal arguments of the small instance, such as ``rows(3, 32, 32)``
    shape : of one example of the default network, for ``describe``
    small : settings of the small instance that the contract test makes

    Examples
    --------
    >>> @architecture("doctest_line", kind="coordinate", inputs=rows(2), shape=(2,))
    ... def line(out: int = 1) -> nn.Module:
    ...     '''A linear map of two coordinates.'''
    ...     return nn.Linear(2, out)
    >>> create("doctest_line", out=3)
    Linear(in_features=2, out_features=3, bias=True)
    >>> _ = architectures._rows.pop("doctest_line")
    """
    if kind not in KINDS:
        raise ValueError(f"kind is one of {', '.join(KINDS)}, got {kind!r}")
    return architectures.register(
        name, kind=kind, inputs=inputs, shape=shape, small=dict(small or {})
    )


def create(name: str, /, *, generator: torch.Generator | None = None, **settings: Any) -> nn.Module:
    """A new network by name.

    Parameters
    ----------
    name : see ``list()``
    generator : source of the initial weights; None is a fixed seed. The process-wide stream of
        torch is left as it was
    settings : of the constructor, such as ``num_classes=10``

    Examples
    --------
    >>> net = create("lenet", num_classes=3)
    >>> net(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 3])
    """
    make = architectures[name].obj
    source = generator or torch.Generator().manual_seed(0)
    if "generator" in inspect.signature(make).parameters:
        settings = {"generator": source, **settings}
    seed = int(torch.randint(2**62, (), generator=source, device=source.device))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        made: nn.Module = make(**settings)
    return made


def list(pattern: str = "*", kind: str | None = None) -> list[str]:  # type: ignore[valid-type]
    """Names of the architectures, of those that match a pattern or are of one kind.

    >>> list("vgg*")
    ['vgg11', 'vgg13', 'vgg16', 'vgg19']
    """
    return [
        row.name
        for row in architectures
        if fnmatch(row.name, pattern) and (kind is None or row.kind == kind)
    ]


@dataclass(frozen=True)
class Description:
    """One architecture: what it is, its layers, how many parameters, a drawing."""

    name: str
    kind: str
    text: str
    layers: Summary
    drawing: Drawing = field(repr=False)

    @property
    def parameters(self) -> int:
        return self.layers.parameters

    def __str__(self) -> str:
        size = "×".join(map(str, self.layers.input_size))
        return (
            f"{self.name} ({self.kind}): {self.text}\n"
            f"{self.parameters:,} parameters, input {size}\n\n{self.layers}"
        )


def describe(name: str, shape: tuple[int, ...] | None = None, **settings: Any) -> Description:
    """Layer table, drawing and number of parameters of an architecture.

    The network is made on the meta device: nothing is computed and no memory is taken. One without
    a shape of its own is described by its small instance.

    Parameters
    ----------
    name : see ``list()``
    shape : of one example; by default that of the registration
    settings : of the constructor

    Examples
    --------
    >>> found = describe("vgg16")
    >>> f"{found.parameters:,}", found.layers.rows[0].output_shape
    ('138,357,544', (64, 224, 224))
    """
    row = architectures[name]
    size: Any = shape or row.shape
    if size is None:
        assert row.inputs is not None
        size = row.inputs(torch.Generator().manual_seed(0))
        net = create(name, **{**row.small, **settings})
    else:
        with torch.device("meta"):
            net = row.obj(**settings)
    layers = summary(net, size)
    return Description(name, row.kind, row.summary, layers, draw_layers(layers))
