"""Tokens with learned merges, by Hugging Face's ``tokenizers``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from groundstate.compute.reduce import Reduce
from groundstate.data.text.plain import UNKNOWN
from groundstate.errors import DataError

LEARNED = ("bpe", "wordpiece", "unigram")


def _library() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise ImportError(
            "tokens with learned merges need Hugging Face's tokenizers; install "
            "groundstate[text], or use kind='word', 'char' or 'byte'"
        ) from None
    return tokenizers


def _words(rust: Any, text: str) -> Iterable[str]:
    """The pieces of a text that no merge leaves, as they stand in it."""
    text = text if rust.normalizer is None else rust.normalizer.normalize_str(text)
    return (text[a:b] for _, (a, b) in rust.pre_tokenizer.pre_tokenize_str(text))


def _inner_signs(words: Mapping[str, float], most: int = 1000) -> list[str]:
    """The signs inside words as wordpieces, "##a", of the most frequent characters."""
    often: Counter[str] = Counter()
    for word, times in words.items():
        for sign in word:
            often[sign] += int(times)
    kept = {sign for sign, _ in sorted(often.items(), key=lambda s: (-s[1], s[0]))[:most]}
    return sorted({f"##{sign}" for word in words for sign in word[1:] if sign in kept})


def _without_special(text: str, tokens: Sequence[str]) -> str:
    """A ``tokenizer.json`` in which these tokens are no special ones."""
    if not tokens:
        return text
    whole = json.loads(text)
    whole["added_tokens"] = [t for t in whole["added_tokens"] if t["content"] not in set(tokens)]
    return json.dumps(whole, ensure_ascii=False)


class HubCoder:
    """A ``tokenizers.Tokenizer``."""

    def __init__(self, text: str) -> None:
        self.text = text  # of tokenizer.json

    @cached_property
    def rust(self) -> Any:
        return _library().Tokenizer.from_str(self.text)

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        kind: str,
        vocab_size: int | None,
        special: Sequence[str],
        min_frequency: int,
        lowercase: bool,
        reduce: Reduce,
    ) -> HubCoder:
        """Merges of frequent neighbours in texts; where shards have their own texts, the words that
        merges never leave are counted, and the counts are summed."""
        lib = _library()
        size = 30_000 if vocab_size is None else vocab_size
        common: dict[str, Any] = {"special_tokens": list(special)}
        common |= {"show_progress": False, "vocab_size": size}
        normal: list[Any] = [lib.normalizers.Lowercase()] if lowercase else []
        if kind == "bpe":
            rust = lib.Tokenizer(lib.models.BPE())
            rust.pre_tokenizer = lib.pre_tokenizers.ByteLevel(add_prefix_space=False)
            rust.decoder = lib.decoders.ByteLevel()
            signs = lib.pre_tokenizers.ByteLevel.alphabet()
            trainer = lib.trainers.BpeTrainer(
                initial_alphabet=signs, min_frequency=min_frequency, **common
            )
        elif kind == "wordpiece":
            rust = lib.Tokenizer(lib.models.WordPiece(unk_token=UNKNOWN))
            rust.pre_tokenizer = lib.pre_tokenizers.BertPreTokenizer()
            rust.decoder = lib.decoders.WordPiece(cleanup=False)
            normal = [lib.normalizers.BertNormalizer(lowercase=lowercase)]
        else:
            rust = lib.Tokenizer(lib.models.Unigram())
            rust.pre_tokenizer = lib.pre_tokenizers.Metaspace()
            rust.decoder = lib.decoders.Metaspace()
            trainer = lib.trainers.UnigramTrainer(unk_token=UNKNOWN, **common)
        if normal:
            rust.normalizer = normal[0]
        inner: list[str] = []
        if reduce.world > 1 or kind == "wordpiece":
            totals = reduce.counts(Counter(w for text in texts for w in _words(rust, text)))
            texts = (word for word in sorted(totals) for _ in range(int(totals[word])))
            inner = _inner_signs(totals) if kind == "wordpiece" else []
        if kind == "wordpiece":
            common["special_tokens"] = [*special, *inner]  # else numbered in any order
            trainer = lib.trainers.WordPieceTrainer(min_frequency=min_frequency, **common)
        rust.train_from_iterator(texts, trainer)
        return cls(_without_special(rust.to_str(), inner))

    @classmethod
    def of_folder(cls, folder: Path) -> HubCoder | None:
        """From the files that older checkpoints have instead of ``tokenizer.json``."""
        merges, words = folder / "merges.txt", folder / "vocab.txt"
        if merges.is_file() and (folder / "vocab.json").is_file():
            lib = _library()
            rust = lib.Tokenizer(lib.models.BPE.from_file(str(folder / "vocab.json"), str(merges)))
            rust.pre_tokenizer = lib.pre_tokenizers.ByteLevel(add_prefix_space=False)
            rust.decoder = lib.decoders.ByteLevel()
            rust.add_special_tokens(["<|endoftext|>"])
            return cls(rust.to_str())
        if words.is_file():
            lib = _library()
            config = folder / "tokenizer_config.json"
            lower = json.loads(config.read_text()).get("do_lower_case", True) if (
                config.is_file()
            ) else True  # fmt: skip
            rust = lib.Tokenizer(lib.models.WordPiece.from_file(str(words), unk_token=UNKNOWN))
            rust.normalizer = lib.normalizers.BertNormalizer(lowercase=lower)
            rust.pre_tokenizer = lib.pre_tokenizers.BertPreTokenizer()
            rust.decoder = lib.decoders.WordPiece(cleanup=False)
            named = ("[PAD]", UNKNOWN, "[CLS]", "[SEP]", "[MASK]")
            rust.add_special_tokens([t for t in named if rust.token_to_id(t) is not None])
            return cls(rust.to_str())
        return None

    @cached_property
    def kind(self) -> str:
        return str(json.loads(self.text)["model"]["type"]).lower()

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        vocab = self.rust.get_vocab(with_added_tokens=True)
        size = max(vocab.values()) + 1
        if size != len(vocab):
            raise DataError(f"the tokenizer numbers {len(vocab)} tokens up to {size - 1}; numbers "
                            "must have no gaps")  # fmt: skip
        return tuple(sorted(vocab, key=vocab.__getitem__))

    @cached_property
    def special(self) -> tuple[str, ...]:
        found = self.rust.get_added_tokens_decoder()
        return tuple(t.content for _, t in sorted(found.items()) if t.special)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        found = self.rust.encode_batch_fast(list(texts), add_special_tokens=False)
        return [list(e.ids) for e in found]

    def decode(self, ids: Sequence[int], skip_special: bool) -> str:
        return str(self.rust.decode(list(ids), skip_special_tokens=skip_special))

    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text)
        return found
