"""Texts to token numbers and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal, overload

import torch
from torch import Tensor

from groundstate.compute.reduce import Reduce
from groundstate.compute.rows import Ragged, Texts, Tokens
from groundstate.compute.rows.ragged import offsets_of
from groundstate.data.text.files import PathLike, read_texts
from groundstate.data.text.hub import LEARNED, HubCoder
from groundstate.data.text.plain import PLAIN, UNKNOWN, PlainCoder
from groundstate.errors import DataError, StoreError

Kind = Literal["bpe", "wordpiece", "unigram", "word", "char", "byte"]
KINDS = (*LEARNED, *PLAIN)


class Tokenizer:
    r"""A vocabulary of tokens, and how texts are cut into them.

    Made by ``Tokenizer.train`` from texts, or by ``Tokenizer.load`` from Hugging Face's
    ``tokenizer.json``.

    Attributes
    ----------
    kind : how texts are cut
    vocabulary : tuple of str, the tokens by number; special tokens are the first of a trained one
    special : tuple of str, the special tokens

    Examples
    --------
    >>> tokenizer = Tokenizer.train(texts=["the cat", "the dog!"], kind="word")
    >>> tokenizer.vocabulary
    ('[UNK]', 'the', '!', 'cat', 'dog')
    >>> tokenizer.encode("the cow"), tokenizer.decode([1, 3])
    ([1, 0], 'the cat')
    """

    def __init__(self, coder: PlainCoder | HubCoder) -> None:
        self._coder = coder

    @classmethod
    def train(
        cls,
        files: PathLike | Sequence[PathLike] | None = None,
        kind: Kind = "bpe",
        vocab_size: int | None = None,
        special_tokens: Sequence[str] = (),
        *,
        texts: Texts | Sequence[str] | None = None,
        weight: Sequence[float] | None = None,
        min_frequency: float = 1,
        lowercase: bool = False,
        reduce: Reduce | None = None,
    ) -> Tokenizer:
        """Learn a vocabulary.

        Parameters
        ----------
        files : a folder, a file (.txt one text, .jsonl one in each line) or several of them
        kind : "bpe" merges frequent neighbours, starting from bytes, so that nothing is unknown;
            "wordpiece" and "unigram" are those of BERT and SentencePiece; "word" cuts at spaces and
            around marks; "char" and "byte" do as they say. The first three need
            ``groundstate[text]``
        vocab_size : tokens at most, special ones included; None is 30,000 for the first three and
            no limit for the others
        special_tokens : get the first numbers and are never cut. "[UNK]" is added where the kind
            has unknown tokens
        texts, weight : strings instead of files; a text of weight 2 is there twice. Merges are
            counted in whole texts
        min_frequency : least weight of a token's (or merged pair's) occurrences
        lowercase : whether "The" is "the"
        reduce : ``groundstate.compute.reduce.current()`` where every process has texts of its own: the
            vocabulary is that of all of them, from summed counts
        """
        if kind not in KINDS:
            raise DataError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
        if (files is None) == (texts is None):
            raise DataError("give either files or texts to train a tokenizer on")
        rows = read_texts(files) if files is not None else texts
        assert rows is not None
        strings = rows.strings() if isinstance(rows, Texts) else list(rows)
        weights = [1.0] * len(strings) if weight is None else [float(w) for w in weight]
        special = list(dict.fromkeys(special_tokens))
        if kind not in ("bpe", "byte") and UNKNOWN not in special:
            special.insert(0, UNKNOWN)
        pairs = zip(strings, weights, strict=True)
        shards = Reduce() if reduce is None else reduce
        if kind in PLAIN:
            how = kind, vocab_size, special, min_frequency, lowercase, shards
            return cls(PlainCoder.train(pairs, *how))
        broken = next((w for w in weights if w < 0 or not float(w).is_integer()), None)
        if broken is not None:
            raise DataError(f"kind={kind!r} counts whole texts, got a weight of {broken:g}")
        often = chain.from_iterable([text] * int(w) for text, w in pairs)
        merged = kind, vocab_size, special, int(min_frequency), lowercase, shards
        return cls(HubCoder.train(often, *merged))

    @property
    def kind(self) -> str:
        return self._coder.kind

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return self._coder.tokens

    @property
    def special(self) -> tuple[str, ...]:
        return self._coder.special

    @property
    def size(self) -> int:
        """Number of tokens."""
        return len(self._coder.tokens)

    def number(self, token: str) -> int:
        """The number of a token; ``DataError`` where it has none."""
        if token not in self._numbers:
            raise DataError(
                f"{token!r} is no token of this vocabulary of {self.size}; a special token is "
                "named in special_tokens when the tokenizer is trained"
            )
        return self._numbers[token]

    @property
    def _numbers(self) -> dict[str, int]:
        if not hasattr(self, "_number_of"):
            self._number_of = {token: i for i, token in enumerate(self.vocabulary)}
        return self._number_of

    def __contains__(self, token: str) -> bool:
        return token in self._numbers

    @overload
    def encode(self, texts: str) -> list[int]: ...
    @overload
    def encode(self, texts: Texts | list[str]) -> Tokens: ...
    def encode(self, texts: str | Texts | list[str]) -> list[int] | Tokens:
        """Token numbers: a list of one string, ``Tokens`` of several."""
        if isinstance(texts, str):
            return self._coder.encode([texts])[0]
        rows = texts if isinstance(texts, Texts) else Texts.of(texts)
        cut = self._coder.encode(rows.strings())
        lengths = torch.tensor([len(c) for c in cut], dtype=torch.int64)
        flat = torch.tensor(list(chain.from_iterable(cut)), dtype=torch.int64)
        return Tokens.of(Ragged(flat, offsets_of(lengths)), rows)

    def encode_words(self, words: Sequence[str]) -> tuple[list[int], list[int]]:
        """Tokens of a text that is already cut into words, and the word of each token.

        Every word has one: of a word of which nothing is left (control characters) it is "[UNK]".
        """
        cut = [c or [self.number(UNKNOWN)] for c in self._coder.encode(list(words))]
        return list(chain.from_iterable(cut)), [i for i, c in enumerate(cut) for _ in c]

    def decode(self, ids: Sequence[int] | Tensor, *, skip_special: bool = True) -> str:
        """The text of token numbers; of kind "word" with a space between tokens."""
        given = ids.tolist() if isinstance(ids, Tensor) else [int(i) for i in ids]
        wrong = next((i for i in given if not 0 <= i < self.size), None)
        if wrong is not None:
            raise DataError(f"token {wrong} is not in 0..{self.size - 1}")
        return self._coder.decode(given, skip_special)

    def one_hot(self, ids: Sequence[int] | Tensor) -> Tensor:
        """``(V, N)``: column n is 1 at token n and 0 elsewhere."""
        given = torch.as_tensor(ids, dtype=torch.int64)
        return torch.nn.functional.one_hot(given, self.size).T.to(torch.get_default_dtype())

    def save(self, path: PathLike) -> Path:
        """Write ``tokenizer.json``, into a folder or under the given name."""
        target = Path(path)
        target = target if target.suffix == ".json" else target / "tokenizer.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(self._coder.json(), ensure_ascii=False, indent=1))
        return target

    @classmethod
    def load(cls, path: PathLike) -> Tokenizer:
        """From a ``tokenizer.json`` or a folder that holds it (or a checkpoint's vocabulary)."""
        given = Path(path)
        found = given / "tokenizer.json" if given.is_dir() else given
        if found.is_file():
            return cls.from_state({"json": found.read_text()})
        older = HubCoder.of_folder(given) if given.is_dir() else None
        if older is None:
            raise StoreError(
                f"{given} holds no tokenizer; expected tokenizer.json, vocab.json with merges.txt, "
                "or vocab.txt"
            )
        return cls(older)

    def to_state(self) -> dict[str, Any]:
        return {"json": json.dumps(self._coder.json(), ensure_ascii=False)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Tokenizer:
        try:
            given = json.loads(state["json"])
        except ValueError as error:
            raise StoreError(f"the file is no tokenizer.json: {error}") from None
        if not isinstance(given, dict) or "model" not in given:
            raise StoreError("the file is no tokenizer.json: it names no model")
        return cls(PlainCoder.of_json(given) or HubCoder(state["json"]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokenizer) and self._coder.json() == other._coder.json()

    def __hash__(self) -> int:
        return hash((self.kind, self.size))

    def __repr__(self) -> str:
        return f"Tokenizer({self.kind!r}, {self.size:,} tokens)"
