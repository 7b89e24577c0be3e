r"""Keys: immutable, splittable sources of randomness.

A key is 128 bits. A child is a hash of its parent and a name,

.. math:: k_{\text{child}} = H(k_{\text{parent}}, \text{name}),

so a child depends on nothing but the path of names that leads to it: not on how many siblings were
made, in which order, in which process or on which worker.
"""

from __future__ import annotations

import hashlib
import operator
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import DataError, Unsupported

if TYPE_CHECKING:
    import torch

RandomState: TypeAlias = (
    "SupportsIndex | np.random.RandomState | np.random.Generator | torch.Generator | Key | None"
)
U64: TypeAlias = NDArray[np.uint64]

GOLDEN = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB
_MASK = (1 << 64) - 1


def mix64(words: U64) -> U64:
    r"""Scramble 64-bit words, one to one (the finaliser of SplitMix64).

    Parameters
    ----------
    words : array of uint64

    Returns
    -------
    array of uint64, same shape

    Examples
    --------
    >>> import numpy as np
    >>> [hex(w) for w in mix64(np.array([0, 1], dtype=np.uint64)).tolist()]
    ['0x0', '0x5692161d100b05e5']
    """
    w = words ^ (words >> np.uint64(30))
    w *= np.uint64(_MIX_1)
    w ^= w >> np.uint64(27)
    w *= np.uint64(_MIX_2)
    w ^= w >> np.uint64(31)
    return w


@dataclass(frozen=True, slots=True)
class Key:
    r"""An immutable 128-bit key from which independent random streams are split.

    Parameters
    ----------
    high, low : int
        The two 64-bit halves; they are the whole state, so a key is stored as two integers.

    Examples
    --------
    >>> key = Key.of(0)
    >>> key.fold("init") == Key.of(0).fold("init")
    True
    >>> key.fold("init") == key.fold("batches")
    False
    >>> first, second = key.split(2)
    >>> first.uniform(1).item() == second.uniform(1).item()
    False
    """

    high: int
    low: int

    def __post_init__(self) -> None:
        for name, half in (("high", self.high), ("low", self.low)):
            if not 0 <= half <= _MASK:
                raise DataError(
                    f"Key.{name}={half} is not a 64-bit word; make keys with Key.of(random_state)."
                )

    @classmethod
    def of(cls, random_state: RandomState = None) -> Key:
        """Make a key from what users pass as ``random_state``.

        An integer gives the same key for ever; None gives a fresh one from the operating system;
        a NumPy or torch generator is advanced by one draw; a key is returned as it is.
        """
        match random_state:
            case Key():
                return random_state
            case None:
                return cls._from_int(secrets.randbits(128))
            case np.random.RandomState():
                drawn = random_state.randint(0, 1 << 32, size=4, dtype=np.uint64)
                return cls._hashed(b"state", drawn.astype("<u8").tobytes())
            case np.random.Generator():
                drawn = random_state.integers(0, 1 << 32, size=4, dtype=np.uint64)
                return cls._hashed(b"generator", drawn.astype("<u8").tobytes())
        if type(random_state).__module__.startswith("torch"):
            import torch

            if isinstance(random_state, torch.Generator):
                seed = _torch_words(random_state, 1)[0]
                return cls._hashed(b"torch", seed.to_bytes(8, "little"))
        try:
            seed = operator.index(random_state)  # type: ignore[arg-type]
        except TypeError:
            raise Unsupported(
                f"random_state is a {type(random_state).__name__}; pass an integer, None, "
                "a NumPy RandomState or Generator, a torch.Generator or a Key."
            ) from None
        if seed < 0:
            raise DataError(f"random_state={seed} is negative; pass an integer of at least 0.")
        return cls._from_int(seed)

    @classmethod
    def _from_int(cls, seed: int) -> Key:
        return cls._hashed(b"int", seed.to_bytes(seed.bit_length() // 8 + 1, "little"))

    @classmethod
    def _hashed(cls, tag: bytes, payload: bytes) -> Key:
        digest = hashlib.blake2b(payload, digest_size=16, person=tag).digest()
        return cls(int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little"))

    def fold(self, *names: str | int) -> Key:
        """The child of that name; ``key.fold("a", 1)`` is ``key.fold("a").fold(1)``."""
        key = self
        for name in names:
            if isinstance(name, str):
                tag, tail = b"name", name.encode()
            else:
                i = operator.index(name)
                tag, tail = b"index", i.to_bytes(i.bit_length() // 8 + 1, "little", signed=True)
            key = Key._hashed(tag, key._bytes() + tail)
        return key

    def split(self, n: int) -> tuple[Key, ...]:
        """The children 0 to n-1; the first ones are the same whatever n is."""
        return tuple(self.fold(i) for i in range(n))

    def _bytes(self) -> bytes:
        return self.high.to_bytes(8, "little") + self.low.to_bytes(8, "little")

    def words(self, n: int) -> U64:
        """n uniform 64-bit words; the first ones are the same whatever n is.  # (n,)"""
        counter = np.arange(1, n + 1, dtype=np.uint64)
        counter *= np.uint64(GOLDEN)
        counter += np.uint64(self.high)
        return mix64(mix64(counter) ^ np.uint64(self.low))

    def uniform(self, n: int) -> NDArray[np.float64]:
        """n uniform numbers in [0, 1).  # (n,)"""
        return (self.words(n) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def numpy(self) -> np.random.Generator:
        """A NumPy generator at the start of this key's stream."""
        bits = np.random.Philox(key=np.array([self.low, self.high], dtype=np.uint64))
        return np.random.Generator(bits)

    def torch(self, device: torch.device | str = "cpu") -> torch.Generator:
        """A torch generator at the start of this key's stream."""
        import torch

        return torch.Generator(device=device).manual_seed(self.low)


def split(generator: torch.Generator | None, n: int) -> tuple[torch.Generator, ...]:
    """Make n independent generators on the same device by drawing n seeds from ``generator``.

    Parameters
    ----------
    generator : torch.Generator or None
        It is advanced by n draws. None stands for fresh entropy on the CPU.
    n : int

    Examples
    --------
    >>> a, b = split(Key.of(0).torch(), 2)
    >>> a.initial_seed() == b.initial_seed()
    False
    """
    import torch

    if generator is None:
        generator = Key.of(None).torch()
    return tuple(
        torch.Generator(device=generator.device).manual_seed(seed)
        for seed in _torch_words(generator, n)
    )


@contextmanager
def seeded(key: Key) -> Iterator[None]:
    """Lend torch's global generator this key's stream inside the block, and put it back after.

    Only for code that knows no other generator: the initialisation and dropout of torch modules.
    """
    import torch

    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices):
        if torch.accelerator.is_available():
            torch.manual_seed(key.low)
        else:  # the same without the queue for devices that are not there
            torch.default_generator.manual_seed(key.low)
        yield


def _torch_words(generator: torch.Generator, n: int) -> list[int]:
    """n integers in [0, 2^63) drawn from a torch generator."""
    import torch

    seeds: list[int] = torch.randint(
        (1 << 63) - 1, (n,), generator=generator, device=generator.device
    ).tolist()
    return seeds
