"""Arrays and tensors as plain blocks of numbers that safetensors can hold, and back.

A plain block has a bool, integer or real dtype. Everything else is a *view* of a plain block plus
a word that says which: complex numbers as pairs, dates as int64 ticks, fixed-width text as code
points, bfloat16 as 16-bit integers.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np

from groundstate.errors import StoreError
from groundstate.store.archive import Array, brief

_PLAIN = frozenset(
    {"bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64"}
    | {"uint8", "uint16", "uint32", "uint64"}
)
_DTYPE = re.compile(
    r"c8|c16|S\d{1,6}|U\d{1,6}|[Mm]8(\[\d{0,6}(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?"
)
_BLOCK = {
    "c8": "float32",
    "c16": "float64",
    "M": "int64",
    "m": "int64",
    "S": "uint8",
    "U": "uint32",
}
# torch dtypes that numpy lacks, and the integers of the same width that carry their bits
_BITS = {"bfloat16": "int16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
_LAST_CODE_POINT = 0x10FFFF


def is_tensor(value: Any) -> bool:
    """True for a torch tensor; never imports torch, since without it there are no tensors."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def encode_array(array: Array, where: str) -> tuple[dict[str, Any], Array]:
    """A JSON note and a plain C-contiguous block that together hold ``array``."""
    note: dict[str, Any] = {}
    if array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous:
        note["order"] = "F"  # BLAS sums in another order otherwise: same numbers, other bits
    block = np.ascontiguousarray(array).reshape(array.shape)
    block = block.astype(block.dtype.newbyteorder("="), copy=False)
    if block.dtype.name in _PLAIN:
        return note, block
    word = block.dtype.str.lstrip("<>|=")
    if _DTYPE.fullmatch(word) is None:
        raise StoreError(
            f"cannot store {where}: an array of dtype {array.dtype} has no portable form; "
            "convert it to numbers, text or dates"
        )
    note["dtype"] = word
    plain = np.dtype(_BLOCK.get(word) or _BLOCK[word[0]])
    if word[0] in "Mm":
        return note, block.view(plain)
    width = block.dtype.itemsize // plain.itemsize
    flat = np.frombuffer(block.tobytes(), plain)
    return note, flat.reshape(*block.shape, width)


def decode_array(note: dict[str, Any], block: Array) -> Array:
    """The array of :func:`encode_array`, writable and independent of the file."""
    word = note.get("dtype")
    array: Array
    if word is None:
        # a bool that is neither 0 nor 1 is undefined behaviour further on
        array = block.view(np.uint8) != 0 if block.dtype == bool else block.copy()
    else:
        array = _from_word(word, block)
    return np.asfortranarray(array) if note.get("order") == "F" else array


def _from_word(word: Any, block: Array) -> Array:
    if not isinstance(word, str) or _DTYPE.fullmatch(word) is None:
        raise StoreError(f"unknown array dtype {word!r:.40}")
    plain = np.dtype(_BLOCK.get(word) or _BLOCK[word[0]])
    if block.dtype != plain:
        raise StoreError(f"an array marked {word} holds {block.dtype} instead of {plain}")
    dtype = np.dtype(word)
    if word[0] in "Mm":
        return block.copy().view(dtype)
    width = dtype.itemsize // plain.itemsize
    if block.ndim == 0 or block.shape[-1] != width:
        raise StoreError(f"an array marked {word} has blocks of the wrong width")
    shape = block.shape[:-1]
    if width == 0 or block.size == 0:
        return np.zeros(shape, dtype)
    if word[0] == "U" and block.max() > _LAST_CODE_POINT:
        raise StoreError("a text array holds numbers that are no characters")
    return np.frombuffer(block.tobytes(), dtype).reshape(shape).copy()


def encode_tensor(tensor: Any, where: str) -> tuple[dict[str, Any], Array]:
    """A JSON note (device, dtype where numpy lacks it) and the plain block of a torch tensor."""
    import torch

    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta:
        raise StoreError(f"cannot store {where}: only dense tensors can be stored; use .to_dense()")
    note: dict[str, Any] = {"device": str(tensor.device)}
    if isinstance(tensor, torch.nn.Parameter):
        note["parameter"] = True
    if tensor.requires_grad:
        note["grad"] = True
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    name = str(plain.dtype).removeprefix("torch.")
    if name in _BITS:
        note["bits"] = name
        plain = plain.view(getattr(torch, _BITS[name]))
    extra, block = encode_array(plain.numpy(), where)
    return {**note, **extra}, block


def decode_tensor(note: dict[str, Any], block: Array, device: str) -> Any:
    """The tensor of :func:`encode_tensor` on ``device`` (``"stored"``: where it was)."""
    import torch

    tensor = torch.from_numpy(decode_array(note, block))
    bits = note.get("bits")
    if bits is not None:
        if bits not in _BITS or block.dtype != np.dtype(_BITS[bits]):
            raise StoreError(f"unknown tensor dtype {bits!r:.40}")
        tensor = tensor.view(getattr(torch, bits))
    target = str(note.get("device", "cpu")) if device == "stored" else device
    try:
        tensor = tensor.to(target)
    # torch reports an unknown or absent device by RuntimeError or AssertionError
    except (RuntimeError, AssertionError) as error:
        raise StoreError(f"device {target!r:.40} cannot be used here ({brief(error)})") from error
    grad = note.get("grad") is True and (tensor.is_floating_point() or tensor.is_complex())
    if note.get("parameter") is True:
        return torch.nn.Parameter(tensor, requires_grad=grad)
    return tensor.requires_grad_(grad)
