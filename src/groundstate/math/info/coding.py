r"""Codes: what a distribution is worth in bits.

A code for q spends :math:`-\log_2 q(x)` bits on x; on data from p that is :math:`H(p, q)` a symbol,
of which :math:`KL(p\|q)` is waste. A prefix code rounds each length up to whole bits, an arithmetic
code rounds once for a whole message.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from groundstate.errors import ShapeError

F64 = NDArray[np.float64]
_TOTAL = 1 << 30  # sum of the integer weights of one symbol
_BITS = 62  # width of the interval: every weight keeps at least 2^30 of it
_TOP, _HALF, _QUARTER = (1 << _BITS) - 1, 1 << (_BITS - 1), 1 << (_BITS - 2)


@dataclass(frozen=True)
class Huffman:
    """A prefix code: no code word begins another.

    Attributes
    ----------
    codes : one string of 0 and 1 for each symbol
    lengths : (K,) their lengths
    mean_length : expected bits of a symbol, between H and H + 1
    """

    codes: tuple[str, ...]
    lengths: NDArray[np.int64]
    mean_length: float

    def encode(self, x: Sequence[int]) -> str:
        """The code words of the symbols, one after the other."""
        return "".join(self.codes[int(i)] for i in x)

    def decode(self, bits: str) -> list[int]:
        """The symbols of a string of bits."""
        words = {word: symbol for symbol, word in enumerate(self.codes)}
        out, start = [], 0
        for end in range(1, len(bits) + 1):
            symbol = words.get(bits[start:end])
            if symbol is not None:
                out.append(symbol)
                start = end
        if start != len(bits):
            raise ValueError(f"the bits end inside a code word: {bits[start:]!r} is left over")
        return out


def huffman(p: Any) -> Huffman:
    r"""The prefix code of least expected length :math:`\sum_k p_k\ell_k`, in [H, H + 1) bits.

    The two rarest symbols differ in their last bit; join them and begin again.

    Parameters
    ----------
    p : weights or counts ``(K,)``

    Examples
    --------
    >>> code = huffman([0.5, 0.25, 0.125, 0.125])
    >>> code.lengths.tolist(), code.mean_length, code.decode(code.encode([3, 0, 1]))
    ([1, 2, 3, 3], 1.75, [3, 0, 1])
    """
    weights = _weights(p, "p")
    heap: list[tuple[float, int, tuple[int, ...]]] = [
        (float(w), k, (k,)) for k, w in enumerate(weights)
    ]
    heapq.heapify(heap)
    words = [""] * len(weights)
    made = len(weights)
    while len(heap) > 1:
        light, second = heapq.heappop(heap), heapq.heappop(heap)
        for bit, (_, _, symbols) in (("1", light), ("0", second)):
            for k in symbols:
                words[k] = bit + words[k]
        heapq.heappush(heap, (light[0] + second[0], made, light[2] + second[2]))
        made += 1
    if len(words) == 1:
        words = ["0"]
    lengths = np.array([len(word) for word in words], np.int64)
    return Huffman(tuple(words), lengths, float(weights @ lengths))


@dataclass(frozen=True)
class Message:
    """An encoded sequence: its bits, packed into bytes, and how many symbols they stand for."""

    data: bytes
    bits: int
    n: int


class ArithmeticCoder:
    r"""A code of :math:`\lceil\sum_t -\log_2 q(x_t\mid x_{<t})\rceil + 1` bits or nearly so.

    The message is a number in an interval that each symbol narrows to its share. All arithmetic is
    on integers, so that decoding repeats encoding exactly.

    Parameters
    ----------
    model : weights ``(K,)`` of independent symbols; or a function of the symbols so far, a list,
        that returns the weights of the next one: any autoregressive model

    Examples
    --------
    >>> coder = ArithmeticCoder([0.9, 0.1])
    >>> message = coder.encode([0] * 60 + [1] + [0] * 39)
    >>> message.bits, coder.decode(message) == [0] * 60 + [1] + [0] * 39
    (19, True)
    >>> bigram = ArithmeticCoder(lambda seen: [1, 9] if seen and seen[-1] else [9, 1])
    >>> bigram.decode(bigram.encode([0, 0, 1, 1, 1]))
    [0, 0, 1, 1, 1]
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self._fixed = None if callable(model) else _cumulative(model)

    def encode(self, x: Sequence[int]) -> Message:
        """Encode symbols 0..K−1."""
        low, high, pending = 0, _TOP, 0
        bits: list[int] = []
        seen: list[int] = []

        def emit(bit: int, waiting: int) -> None:
            bits.append(bit)
            bits.extend([1 - bit] * waiting)

        for t, symbol in enumerate(x):
            symbol = int(symbol)
            edges = self._edges(seen)
            if not 0 <= symbol < len(edges) - 1:
                raise ValueError(f"symbol {symbol} at place {t} is not in 0..{len(edges) - 2}")
            first, last = int(edges[symbol]), int(edges[symbol + 1])
            if first == last:
                raise ValueError(
                    f"the model gives symbol {symbol} at place {t} probability 0; smooth the model"
                )
            low, high = _narrow(low, high, first, last)
            while True:
                if high < _HALF:
                    emit(0, pending)
                    pending = 0
                elif low >= _HALF:
                    emit(1, pending)
                    pending = 0
                    low, high = low - _HALF, high - _HALF
                elif low >= _QUARTER and high < _HALF + _QUARTER:
                    pending += 1
                    low, high = low - _QUARTER, high - _QUARTER
                else:
                    break
                low, high = 2 * low, 2 * high + 1
            seen.append(symbol)
        if seen:
            emit(0 if low < _QUARTER else 1, pending + 1)
        return Message(np.packbits(np.array(bits, np.uint8)).tobytes(), len(bits), len(seen))

    def decode(self, message: Message) -> list[int]:
        """The symbols of a message of the same model."""
        unpacked = np.unpackbits(np.frombuffer(message.data, np.uint8), count=message.bits).tolist()
        word = "".join(map(str, unpacked[:_BITS])).ljust(_BITS, "0")
        code, place = int(word, 2), _BITS
        low, high = 0, _TOP
        seen: list[int] = []
        while len(seen) < message.n:
            edges = self._edges(seen)
            inside = ((code - low + 1) * _TOTAL - 1) // (high - low + 1)
            symbol = int(np.searchsorted(edges, inside, side="right")) - 1
            low, high = _narrow(low, high, int(edges[symbol]), int(edges[symbol + 1]))
            while True:
                if high < _HALF:
                    pass
                elif low >= _HALF:
                    low, high, code = low - _HALF, high - _HALF, code - _HALF
                elif low >= _QUARTER and high < _HALF + _QUARTER:
                    low, high, code = low - _QUARTER, high - _QUARTER, code - _QUARTER
                else:
                    break
                bit = unpacked[place] if place < message.bits else 0
                low, high, code = 2 * low, 2 * high + 1, 2 * code + bit
                place += 1
            seen.append(symbol)
        return seen

    def _edges(self, seen: list[int]) -> NDArray[np.int64]:
        if self._fixed is not None:
            return self._fixed
        model: Callable[[list[int]], Any] = self.model
        return _cumulative(model(seen))


def _narrow(low: int, high: int, first: int, last: int) -> tuple[int, int]:
    width = high - low + 1
    return low + width * first // _TOTAL, low + width * last // _TOTAL - 1


def _weights(p: Any, name: str) -> F64:
    """Weights divided by their sum; without tensors, since a model is asked once a symbol."""
    weights = np.asarray(p.detach().cpu() if isinstance(p, Tensor) else p, np.float64)
    if weights.ndim != 1 or not len(weights):
        raise ShapeError(f"{name} must be one row of weights (K,), got shape {weights.shape}")
    total = float(weights.sum())
    if not (np.isfinite(total) and total > 0 and weights.min() >= 0):
        raise ValueError(f"{name} must be finite weights, none negative and not all zero")
    out: F64 = weights / total
    return out


def _cumulative(p: Any) -> NDArray[np.int64]:
    """Cumulated integer weights that sum to ``_TOTAL``, at least 1 where p is above 0."""
    weights = _weights(p, "model")
    whole = np.floor(weights * _TOTAL).astype(np.int64)
    whole[(weights > 0) & (whole == 0)] = 1
    whole[int(np.argmax(whole))] += _TOTAL - int(whole.sum())
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(whole)])
