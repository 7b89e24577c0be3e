"""Numba beyond its decorators: instructions it does not write by itself, fewer compiled forms."""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils, event
from numba.cpython.unsafe.numbers import trailing_zeros as _trailing_zeros
from numba.extending import intrinsic

__all__ = [
    "add_outer", "add_outer_three", "add_outer_two", "add_pair", "add_pair_at_four", "event",
    "one_form", "trailing_zeros", "wide_registers",
]  # fmt: skip

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


LANES = 8  # numbers of double precision in a register of 512 bits


@cache
def wide_registers() -> bool:
    """Whether this processor has 32 registers of eight numbers, which `add_outer` is written for."""
    return bool(binding.get_host_cpu_features().get("avx512f"))


def _adding_outer(x: Any, out: Any, vectors: int) -> Any:
    """``out[i:i + 8, j:j + 8 * vectors] += x[:n, i:i + 8].T @ x[:n, j:j + 8 * vectors]``."""
    i64 = types.int64
    signature = types.void(x, i64, i64, i64, out)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows, i, j, n, sums = args
        word, short = ir.IntType(64), ir.IntType(32)
        vector = ir.VectorType(ir.DoubleType(), LANES)
        first = ir.Constant(ir.VectorType(short, LANES), [0] * LANES)
        nothing = ir.Constant(vector, ir.Undefined)
        fma = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(vector, [vector] * 3), f"llvm.fma.v{LANES}f64"
        )
        table = context.make_array(signature.args[0])(context, builder, rows)
        found = context.make_array(signature.args[-1])(context, builder, sums)
        width = cgutils.unpack_tuple(builder, table.shape)[1]
        ld = cgutils.unpack_tuple(builder, found.shape)[1]

        def place(base: Any, index: int) -> Any:
            at = builder.gep(base, [ir.Constant(word, LANES * index)])
            return builder.bitcast(at, vector.as_pointer())

        before = builder.block
        head, body, done = (builder.append_basic_block(name) for name in ("head", "body", "done"))
        left, right = builder.gep(table.data, [i]), builder.gep(table.data, [j])
        builder.branch(head)
        builder.position_at_end(head)
        k, a, b = builder.phi(word), builder.phi(left.type), builder.phi(right.type)
        acc = [[builder.phi(vector) for _ in range(vectors)] for _ in range(LANES)]
        for phi, start in ((k, ir.Constant(word, 0)), (a, left), (b, right)):
            phi.add_incoming(start, before)
        for phi in (phi for line in acc for phi in line):
            phi.add_incoming(ir.Constant(vector, [0.0] * LANES), before)
        builder.cbranch(builder.icmp_signed("<", k, n), body, done)
        builder.position_at_end(body)
        wide = [builder.load(place(b, q), align=8) for q in range(vectors)]
        for p, line in enumerate(acc):
            one = builder.load(builder.gep(a, [ir.Constant(word, p)]))
            one = builder.insert_element(nothing, one, ir.Constant(short, 0))
            one = builder.shuffle_vector(one, nothing, first)
            for q, phi in enumerate(line):
                phi.add_incoming(builder.call(fma, [one, wide[q], phi]), body)
        k.add_incoming(builder.add(k, ir.Constant(word, 1)), body)
        a.add_incoming(builder.gep(a, [width]), body)
        b.add_incoming(builder.gep(b, [width]), body)
        builder.branch(head)
        builder.position_at_end(done)
        for p, line in enumerate(acc):
            row = builder.add(builder.mul(builder.add(i, ir.Constant(word, p)), ld), j)
            for q, phi in enumerate(line):
                to = place(builder.gep(found.data, [row]), q)
                builder.store(builder.fadd(builder.load(to, align=8), phi), to, align=8)
        return context.get_dummy_value()

    return signature, codegen


@_intrinsic
def add_outer(typingctx: Any, x: Any, i: Any, j: Any, n: Any, out: Any) -> Any:
    """``out[i:i+8, j:j+8] += x[:n, i:i+8].T @ x[:n, j:j+8]``, the sums held in registers."""
    return _adding_outer(x, out, 1)


@_intrinsic
def add_outer_two(typingctx: Any, x: Any, i: Any, j: Any, n: Any, out: Any) -> Any:
    """`add_outer` of 16 columns ``j:j+16``."""
    return _adding_outer(x, out, 2)


@_intrinsic
def add_outer_three(typingctx: Any, x: Any, i: Any, j: Any, n: Any, out: Any) -> Any:
    """`add_outer` of 24 columns ``j:j+24``."""
    return _adding_outer(x, out, 3)


def one_form(dispatcher: Any) -> Any:
    """Let compiled code that passes a constant share the form for numbers of that type.

    Numba would compile a function once for every constant that it is called with.
    """
    template = dispatcher.get_call_template

    def plain(args: Any, kws: Any) -> Any:
        return template([types.unliteral(a) for a in args], kws)

    dispatcher.get_call_template = plain
    return dispatcher
