"""Models of texts, tokenizers and word vectors."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.data.text.reference_bpe import reference_bpe as reference_bpe
    from groundstate.data.text.tokenizer import Tokenizer as Tokenizer
    from groundstate.models.text.word_vectors import WordVectors as WordVectors

lazy(__name__)
