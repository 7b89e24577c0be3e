"""Numba beyond its decorators: instructions it does not write by itself, fewer compiled forms."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import event
from numba.cpython.unsafe.numbers import trailing_zeros as _trailing_zeros
from numba.extending import intrinsic

__all__ = ["add_pair", "add_pair_at_four", "event", "one_form", "trailing_zeros"]

trailing_zeros: Any = _trailing_zeros
_intrinsic: Any = intrinsic  # it adds the typing context by itself


def _adding(hist: Any, pairs: Any, places: int) -> Any:
    """``hist[at:at + 2] += pairs[k]`` at some places: arguments ``hist, at..., pairs, k``."""
    signature = types.void(hist, *[types.int64] * places, pairs, types.int64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        i64, whole = ir.IntType(64), isinstance(hist.dtype, types.Integer)
        two = ir.VectorType(i64 if whole else ir.DoubleType(), 2)
        add = builder.add if whole else builder.fadd
        bins = context.make_array(signature.args[0])(context, builder, args[0]).data
        rows = context.make_array(signature.args[-2])(context, builder, args[-2]).data

        def place(base: Any, index: Any) -> Any:
            return builder.bitcast(builder.gep(base, [index]), two.as_pointer())

        pair = builder.load(place(rows, builder.shl(args[-1], ir.Constant(i64, 1))), align=8)
        for index in args[1:-2]:
            to = place(bins, index)
            builder.store(add(builder.load(to, align=8), pair), to, align=8)
        return context.get_dummy_value()

    return signature, codegen


@_intrinsic
def add_pair(typingctx: Any, hist: Any, at: Any, pairs: Any, k: Any) -> Any:
    """Add the two numbers ``pairs[k]`` to ``hist[at:at + 2]`` at once."""
    return _adding(hist, pairs, 1)


@_intrinsic
def add_pair_at_four(
    typingctx: Any, hist: Any, a: Any, b: Any, c: Any, d: Any, pairs: Any, k: Any
) -> Any:
    """Add the two numbers ``pairs[k]`` to ``hist`` at four places, two numbers at a time."""
    return _adding(hist, pairs, 4)


def one_form(dispatcher: Any) -> Any:
    """Let compiled code that passes a constant share the form for numbers of that type.

    Numba would compile a function once for every constant that it is called with.
    """
    template = dispatcher.get_call_template

    def plain(args: Any, kws: Any) -> Any:
        return template([types.unliteral(a) for a in args], kws)

    dispatcher.get_call_template = plain
    return dispatcher
