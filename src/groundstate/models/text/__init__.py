"""Models of texts, tokenizers and word vectors."""

from groundstate.data.text.reference_bpe import reference_bpe
from groundstate.data.text.tokenizer import Tokenizer
from groundstate.models.text.word_vectors import WordVectors

__all__ = ["Tokenizer", "WordVectors", "reference_bpe"]
