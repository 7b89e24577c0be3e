"""Tokens that need no learned merges: words between spaces, characters, bytes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from groundstate.compute.reduce import Reduce
from groundstate.errors import DataError

UNKNOWN = "[UNK]"
PLAIN = ("word", "char", "byte")
_WORDS = re.compile(r"\w+|[^\w\s]")
_SPLIT: dict[str, dict[str, Any]] = {  # as Hugging Face's tokenizer.json says it
    "word": {
        "type": "Split", "pattern": {"Regex": r"\w+|[^\w\s]"}, "behavior": "Removed",
        "invert": True,
    },
    "char": {
        "type": "Split", "pattern": {"Regex": r"[\s\S]"}, "behavior": "Isolated", "invert": False,
    },
    "byte": {
        "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False,
    },
}  # fmt: skip
_DECODER: dict[str, dict[str, Any] | None] = {
    "word": None,
    "char": {"type": "Fuse"},
    "byte": _SPLIT["byte"],
}


def byte_signs() -> list[str]:
    """A printable character for each byte, as byte-level tokenizers write them."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in shown]
    sign = {b: chr(b) for b in shown} | {b: chr(256 + i) for i, b in enumerate(others)}
    return [sign[b] for b in range(256)]


@dataclass(frozen=True)
class PlainCoder:
    """Words, characters or bytes and their numbers; special tokens have the first ones."""

    kind: str
    tokens: tuple[str, ...]
    special: tuple[str, ...]
    lowercase: bool = False
    _numbers: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        numbers = {token: i for i, token in enumerate(self.tokens)}
        object.__setattr__(self, "_numbers", numbers)

    @classmethod
    def train(
        cls,
        texts: Iterable[tuple[str, float]],
        kind: str,
        vocab_size: int | None,
        special: Sequence[str],
        min_frequency: float,
        lowercase: bool,
        reduce: Reduce,
    ) -> PlainCoder:
        """The most frequent words or characters of weighted texts, of all shards; all bytes."""
        if kind == "byte":
            if vocab_size is not None and vocab_size < 256 + len(special):
                raise DataError(f"bytes with {len(special)} special tokens need vocab_size "
                                f"{256 + len(special)}, got {vocab_size}")  # fmt: skip
            return cls(kind, (*special, *byte_signs()), tuple(special), lowercase)
        counts: defaultdict[str, float] = defaultdict(float)
        blank = cls(kind, tuple(special), tuple(special), lowercase)
        for text, weight in texts:
            for token, times in Counter(blank.cut(text)).items() if weight > 0 else ():
                counts[token] += weight * times
        totals = reduce.counts(counts)
        kept = [t for t, n in totals.items() if n >= min_frequency and t not in special]
        kept.sort(key=lambda t: (-totals[t], t))
        if not kept:
            raise DataError(
                f"the texts hold no {kind} of a weight of at least {min_frequency:g} to learn a "
                "vocabulary from; are they empty?"
            )
        room = None if vocab_size is None else vocab_size - len(special)
        if room is not None and room < 1:
            raise DataError(f"vocab_size={vocab_size} leaves no room behind {len(special)} special "
                            "tokens")  # fmt: skip
        return cls(kind, (*special, *kept[:room]), tuple(special), lowercase)

    def cut(self, text: str) -> list[str]:
        """The tokens of one text, in the vocabulary or not."""
        if self.special and self._special.search(text):
            parts = self._special.split(text)
            return [t for i, p in enumerate(parts) for t in ([p] if i % 2 else self._cut(p))]
        return self._cut(text)

    @cached_property
    def _special(self) -> re.Pattern[str]:
        longest = sorted(self.special, key=len, reverse=True)
        return re.compile("(" + "|".join(map(re.escape, longest)) + ")")

    def _cut(self, text: str) -> list[str]:
        text = text.lower() if self.lowercase else text
        if self.kind == "word":
            return _WORDS.findall(text)
        if self.kind == "char":
            return list(text)
        first = len(self.special)
        return [self.tokens[first + b] for b in text.encode("utf-8", "surrogatepass")]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        number = self._numbers
        if self.kind == "byte":
            return [[number[t] for t in self.cut(text)] for text in texts]
        unknown = number[UNKNOWN]
        return [[number.get(t, unknown) for t in self.cut(text)] for text in texts]

    def decode(self, ids: Sequence[int], skip_special: bool) -> str:
        skipped = set(self.special) if skip_special else set()
        tokens = [t for t in (self.tokens[i] for i in ids) if t not in skipped]
        if self.kind != "byte":
            return (" " if self.kind == "word" else "").join(tokens)
        value = {sign: b for b, sign in enumerate(byte_signs())}
        out = [t.encode() if t in self.special else bytes([value[t]]) for t in tokens]
        return b"".join(out).decode("utf-8", "replace")

    def json(self) -> dict[str, Any]:
        """The same tokenizer as Hugging Face's ``tokenizer.json``."""
        model: dict[str, Any] = {"type": "WordLevel", "vocab": self._numbers, "unk_token": UNKNOWN}
        if self.kind == "byte":
            model = {
                "type": "BPE", "dropout": None, "unk_token": None,
                "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False,
                "byte_fallback": False, "ignore_merges": False, "vocab": self._numbers,
                "merges": [],
            }  # fmt: skip
        added = [
            {"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": True}
            for i, token in enumerate(self.special)
        ]  # fmt: skip
        return {
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": {"type": "Lowercase"} if self.lowercase else None,
            "pre_tokenizer": _SPLIT[self.kind], "post_processor": None,
            "decoder": _DECODER[self.kind], "model": model,
        }  # fmt: skip

    @classmethod
    def of_json(cls, given: dict[str, Any]) -> PlainCoder | None:
        """The tokenizer of a ``tokenizer.json``, None where it is of another kind."""
        kind = next((k for k, s in _SPLIT.items() if given.get("pre_tokenizer") == s), None)
        vocab = given.get("model", {}).get("vocab")
        if kind is None or not isinstance(vocab, dict):
            return None
        tokens = tuple(sorted(vocab, key=vocab.__getitem__))
        special = tuple(t["content"] for t in given.get("added_tokens", ()))
        made = cls(kind, tokens, special, given.get("normalizer") is not None)
        return made if made.json() == given else None
