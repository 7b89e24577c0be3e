r"""The one contract: an energy :math:`e(x, y, z; \theta)`, low where values fit together.

Conventions, stated once: :math:`p \propto e^{-e/T}`; score = logit = :math:`-e`; point inference
is argmin; learning lowers ``e`` on data; ``e`` returns one real per row, shape ``(B,)``;
``+inf`` forbids a value; ties go to the lowest index of ``space.enumerate()``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from torch import Tensor, nn

from groundstate.compute.modules import LightModule
from groundstate.compute.rows import Rows, common_count, describe, elements, take, tensors
from groundstate.energy.abilities import MARK, Offer
from groundstate.energy.spaces import Finite, Space
from groundstate.errors import ShapeError, Unsupported

if TYPE_CHECKING:
    from groundstate.energy.compose.operators import Given, Marginal, Minimal, Scaled, Sum
    from groundstate.energy.exact import Inference

CPU = torch.device("cpu")
TABLE_CHUNK = 2**24  # elements of one generic table evaluation


@dataclass(frozen=True)
class Capability:
    """One row of ``energy.capabilities()``."""

    kind: str
    variables: tuple[str, ...]
    declared: bool  # False: derived from the spaces or by composition


class Energy(LightModule):
    r"""An energy function :math:`e(x, y, z; \theta)`; subclasses write ``forward``.

    Which arguments are observed is the caller's choice, not the energy's. ``forward`` is the only
    required method; abilities (``groundstate.energy.abilities``) make inference exact and fast.

    Attributes
    ----------
    spaces : Mapping[str, Space]
        Where each variable lives; ``"x"``, ``"y"``, ``"z"`` by convention, others allowed.
    normalised : frozenset[str]
        Variables over which :math:`e^{-e}` integrates to one.
    context : tuple[str, ...]
        Further optional given arguments that are no variables, such as ``"lengths"``.
    gaussian : frozenset[str]
        Variables in which e is quadratic given the others, so that sums of such energies have a
        Gaussian conditional.
    rows : int or None
        Batch size that values given from outside (``energy.given``) have fixed.

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import Energy, Real
    >>> class Quartic(Energy):
    ...     def __init__(self):
    ...         super().__init__(x=Real(1))
    ...     def forward(self, x):
    ...         return (x**2 - 1).square().sum(-1)
    >>> Quartic()(x=torch.tensor([[1.0], [2.0]])).tolist()
    [0.0, 9.0]
    """

    bounded_below: bool = False  # e ≥ c for all values and θ: a distance cannot fall without end
    spaces: Mapping[str, Space]
    normalised: frozenset[str] = frozenset()
    context: tuple[str, ...] = ()
    gaussian: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()  # variables that may hold NaN
    rows: int | None = None
    mixes: ClassVar[bool] = False  # conditionals may be mixtures, which have no known mode
    _declared: ClassVar[dict[tuple[str, frozenset[str]], tuple[str, Offer]]] = {}

    def __init__(self, **spaces: Space) -> None:
        super().__init__()
        vars(self)["spaces"] = spaces  # past `nn.Module.__setattr__`, which small fits feel

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        declared: dict[tuple[str, frozenset[str]], tuple[str, Offer]] = {}
        for base in reversed(cls.__mro__):  # also bases that are no energies themselves
            for name, method in vars(base).items():
                for offer in getattr(method, MARK, ()):
                    declared[(offer.kind, offer.variables)] = (name, offer)
        cls._declared = declared

    def __call__(self, **values: Any) -> Tensor:
        rows = common_count(values.values())
        if rows == -1:
            raise ShapeError(
                f"every argument of {type(self).__name__} needs the same leading batch size, got "
                + shapes_of(values)
            )
        e: Tensor = super().__call__(**values)
        if e.ndim != 1 or (rows >= 0 and e.shape[0] != rows):
            raise ShapeError(
                f"{type(self).__name__} must return one energy per row, shape ({rows},), "
                f"but returned {tuple(e.shape)} for {shapes_of(values)}; sum over event axes and "
                "check for broadcasting over the batch"
            )
        return e

    # --- abilities -----------------------------------------------------------------------

    def ability(self, kind: str, *variables: str) -> Callable[..., Any] | None:
        """The method that offers ``kind`` for exactly these variables, or None."""
        declared = self.declared(kind, *variables)
        return self._derived(kind, frozenset(variables)) if declared is None else declared

    def declared(self, kind: str, *variables: str) -> Callable[..., Any] | None:
        """Like ``ability``, but only what the class itself declares."""
        name, offer = self._declared.get((kind, frozenset(variables)), ("", None))
        if offer is None or not (offer.when is None or offer.when(self)):
            return None
        method: Callable[..., Any] = getattr(self, name)
        return method

    def offer(self, kind: str, *variables: str) -> Offer | None:
        """The declaration behind ``ability``, e.g. to see whether it is ``partial``."""
        found = self._declared.get((kind, frozenset(variables)))
        if found is not None and (found[1].when is None or found[1].when(self)):
            return found[1]
        if self._derived(kind, frozenset(variables)) is not None:
            mixed = kind == "conditional" and any(
                part.mixes and name in part.spaces and not isinstance(part.spaces[name], Finite)
                for part in self.modules()
                if isinstance(part, Energy)
                for name in variables
            )
            return Offer(kind, frozenset(variables), mode=not mixed)
        return None

    def _derived(self, kind: str, variables: frozenset[str]) -> Callable[..., Any] | None:
        """Abilities that follow from parts; composed energies fill this in."""
        return None

    def _derived_keys(self) -> Iterable[tuple[str, frozenset[str]]]:
        """Which derived abilities to list in ``capabilities``."""
        return ()

    def capabilities(self) -> tuple[Capability, ...]:
        """Declared and derived abilities, as data for dispatch, docs and menus."""
        rows = [
            Capability(kind, self.ordered(names), True)
            for (kind, names), (_, offer) in self._declared.items()
            if offer.when is None or offer.when(self)
        ]
        seen = {(row.kind, frozenset(row.variables)) for row in rows}
        derived = [
            (kind, names)
            for kind, names in self._derived_keys()
            if (kind, names) not in seen and self._derived(kind, names) is not None
        ]
        derived += [
            ("table", frozenset({name}))
            for name, space in self.spaces.items()
            if space.is_finite and ("table", frozenset({name})) not in seen
        ]
        rows += [Capability(k, self.ordered(names), False) for k, names in dict.fromkeys(derived)]
        return tuple(rows)

    def ordered(self, names: Iterable[str]) -> tuple[str, ...]:
        """Names in the order of ``spaces``."""
        wanted = set(names)
        return tuple(name for name in self.spaces if name in wanted)

    # --- tables --------------------------------------------------------------------------

    def table(self, variable: str, **given: Tensor) -> Tensor:
        r"""All energies :math:`e(\cdot, v)` of a finite variable in one pass, ``(B, K)``.

        Uses the declared table; otherwise evaluates ``e`` on every value in chunks. When nothing
        is given, ``B`` is 1.
        """
        declared = self.ability("table", variable)
        if declared is not None:
            result: Tensor = declared(**given)
            return result
        space = self.spaces[variable]
        if not space.is_finite:
            raise Unsupported(
                f"{type(self).__name__} cannot list the energies of {variable!r}: {space!r} is "
                "infinite; use minimise, marginalise or sample instead"
            )
        device, dtype = self.placement(given)
        values = space.enumerate(device, dtype)  # (K, *event)
        rows, k = batch_size(given) if given else self.rows or 1, len(values)
        per_row = max([1, *map(elements, given.values()), values[0].numel()])
        step = max(1, int(TABLE_CHUNK // (rows * per_row)))
        columns = []
        for chunk in torch.split(values, step):
            c = len(chunk)
            each = torch.arange(rows, device=device).repeat_interleave(c)
            repeated: dict[str, Any] = {n: take(v, each) for n, v in given.items()}  # (B*c, ...)
            repeated[variable] = chunk.repeat(rows, *(1,) * (chunk.ndim - 1))
            columns.append(self(**repeated).view(rows, c))
        return columns[0] if len(columns) == 1 else torch.cat(columns, 1).view(rows, k)

    @property
    def smooth(self) -> bool:
        """Whether e has a continuous gradient in θ; False where it has kinks, as hinges have."""
        return True

    # --- placement -----------------------------------------------------------------------

    def placement(
        self, values: Mapping[str, Rows] | None = None
    ) -> tuple[torch.device, torch.dtype]:
        """Device and floating dtype: the parameters', else the values', else torch's default."""
        for parameter in self._parameters.values():  # the usual case, without torch's walk
            if parameter is not None and parameter.is_floating_point():
                return parameter.device, parameter.dtype
        if not self._modules:
            for buffer in self._buffers.values():
                if buffer is not None and buffer.is_floating_point():
                    return buffer.device, buffer.dtype
        given = [t for v in (values or {}).values() for t in tensors(v)]
        for tensor in chain(self.parameters(), self.buffers(), given):
            if tensor.is_floating_point():
                return tensor.device, tensor.dtype
        for tensor in given:
            return tensor.device, torch.get_default_dtype()
        return torch.device("cpu"), torch.get_default_dtype()

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """As ``nn.Module.to``; a change of dtype on the CPU skips its walk, which small fits feel."""
        plain = (
            len(args) == 2 and not kwargs and args[0] == CPU and isinstance(args[1], torch.dtype)
        )
        if plain and args[1].is_floating_point:
            modules = list(self.modules()) if self._modules else [self]
            if all(map(_is_plain, modules)):
                for module in modules:
                    _convert(module, args[1])
                return self
            if all(_is_there(module, args[1]) for module in modules):
                return self
        return super().to(*args, **kwargs)

    # --- composition (groundstate.energy.compose.operators) ----------------------------------------

    def __add__(self, other: Energy) -> Sum:
        from groundstate.energy.compose.operators import Sum

        return Sum(self, other)

    def __mul__(self, c: float) -> Scaled:
        from groundstate.energy.compose.operators import Scaled

        return Scaled(self, c)

    __rmul__ = __mul__

    def given(self, **values: Tensor) -> Given:
        """Fix some variables from outside; the rest stay variables."""
        from groundstate.energy.compose.operators import Given

        return Given(self, values)

    def marginal(
        self, *variables: str, T: float = 1.0, method: Inference | None = None
    ) -> Marginal:
        r"""The free energy :math:`-T\log\sum_z e^{-e/T}` as an energy of the other variables."""
        from groundstate.energy.compose.operators import Marginal

        return Marginal(self, variables, T, method)

    def minimal(self, *variables: str, method: Inference | None = None) -> Minimal:
        r"""The minimum :math:`\min_z e` as an energy of the others; :math:`z^*` is detached."""
        from groundstate.energy.compose.operators import Minimal

        return Minimal(self, variables, method)

    def tempered(self, T: float) -> Scaled:
        """``e / T``: the energy whose distribution at temperature one is this one's at ``T``."""
        return self * (1.0 / T)


def _is_there(module: nn.Module, dtype: torch.dtype) -> bool:
    """Whether a module is on the CPU in this dtype already."""
    return type(module)._apply is nn.Module._apply and all(
        t is None or (t.is_cpu and (t.dtype == dtype or not t.is_floating_point()))
        for t in (*module._parameters.values(), *module._buffers.values())
    )


def _is_plain(module: nn.Module) -> bool:
    """Whether a module holds nothing but tensors of the CPU that have no gradient yet."""
    return type(module)._apply is nn.Module._apply and all(
        t is None or (type(t) in (nn.Parameter, Tensor) and t.is_cpu and t.grad is None)
        for t in (*module._parameters.values(), *module._buffers.values())
    )


def _convert(module: nn.Module, dtype: torch.dtype) -> None:
    """Floating parameters (in place) and buffers in another dtype."""
    for parameter in module._parameters.values():
        if parameter is not None and parameter.dtype != dtype and parameter.is_floating_point():
            parameter.data = parameter.data.to(dtype)
    for name, buffer in module._buffers.items():
        if buffer is not None and buffer.dtype != dtype and buffer.is_floating_point():
            module._buffers[name] = buffer.to(dtype)


def batch_size(values: Mapping[str, Rows]) -> int:
    """Shared leading size of the values, 1 when there are none."""
    rows = common_count(values.values())
    if rows == -1:
        raise ShapeError(f"arguments need the same leading batch size, got {shapes_of(values)}")
    return 1 if rows == -2 else rows


def shapes_of(values: Mapping[str, Rows]) -> str:
    return ", ".join(
        f"{name} {tuple(v.shape) if isinstance(v, Tensor) else f'({describe(v)})'}"
        for name, v in values.items()
    )
