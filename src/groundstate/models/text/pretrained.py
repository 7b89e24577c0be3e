"""What a model of texts starts from: a fitted language model, a file or folder of one, or nothing."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from groundstate.data.text.tokenizer import Tokenizer
from groundstate.errors import StoreError
from groundstate.models.text.language_model import LanguageModel
from groundstate.models.text.masked_language_model import FIRST, LAST, MaskedLanguageModel


@dataclass(frozen=True)
class Base:
    """A network for tokens, its tokenizer, and what stands around the tokens of a text."""

    net: nn.Module
    tokenizer: Tokenizer
    first: int
    last: int
    context: int


def base_of(given: Any) -> Base:
    """The base that was asked for; its network is a copy.

    Parameters
    ----------
    given : a fitted ``MaskedLanguageModel`` or ``LanguageModel``, a file that one of them was saved
        to, or a folder with a BERT or GPT-2 checkpoint
    """
    if isinstance(given, str | Path):
        given = _loaded(Path(given))
    if not hasattr(given, "energy_"):
        raise ValueError(
            f"base must be a fitted MaskedLanguageModel or LanguageModel, a saved one or a folder "
            f"of a checkpoint, got {given!r:.80}; fit it first"
        )
    if isinstance(given, MaskedLanguageModel):
        words = given.tokenizer_
        return Base(deepcopy(given.network_), words, words.number(FIRST), words.number(LAST),
                    given._length)  # fmt: skip
    if isinstance(given, LanguageModel):
        return Base(deepcopy(given.network_), given.tokenizer_, given.end_, given.end_,
                    given.energy_.length)  # fmt: skip
    raise ValueError(
        f"base is a {type(given).__name__}, expected a MaskedLanguageModel or LanguageModel"
    )


def _loaded(path: Path) -> Any:
    if path.is_dir():
        config = path / "config.json"
        kind = json.loads(config.read_text()).get("model_type") if config.is_file() else None
        if kind == "bert":
            return MaskedLanguageModel.from_pretrained(path)
        if kind == "gpt2":
            return LanguageModel.from_pretrained(path)
        raise StoreError(f"{path} holds no checkpoint of a BERT or GPT-2 with its config.json")
    from groundstate.store import load

    return load(path)
