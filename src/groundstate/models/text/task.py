"""What classifiers and taggers of texts share: a base, its tokens, and a network with a new head."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

from sklearn.base import clone
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval
from groundstate.data.text.tokenizer import Tokenizer
from groundstate.energy.spaces import Space, TokenSequence
from groundstate.models.rows.network import RowNetwork
from groundstate.models.text.masked_language_model import FIRST, LAST, SPECIAL
from groundstate.models.text.pretrained import Base, base_of
from groundstate.models.text.vocabulary import TRANSFORMER, tokenizer_of
from groundstate.models.traits import Traits


class TextNetwork(RowNetwork):
    """Base of the estimators that put a head on a network for texts.

    Parameters
    ----------
    base : fitted MaskedLanguageModel or LanguageModel, path or None
        What learning starts from; a path is a file of a saved one, or a folder with a BERT or GPT-2
        checkpoint. None starts from scratch.
    network : str, module, class or function
        Without a base: "bert", "gpt", "gru_lm", "lstm_lm", or a module of their kind.
    context : int
        Tokens that are read; the rest of a text is not. With a base at most its own.
    tokenizer, vocab_size, lowercase : str, path or Tokenizer; int; bool
        Without a base, see ``MaskedLanguageModel``.
    dim, layers, heads : int
        Sizes of the network without a base.
    dropout : float

    Attributes
    ----------
    tokenizer_ : Tokenizer
    """

    rows: ClassVar[str] = "text"
    traits = Traits(program=None)
    _store_skip: ClassVar[tuple[str, ...]] = ("callbacks", "base")
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "base": "no_validation",
        "context": [Interval(Integral, 3, None, closed="left")],
        **TRANSFORMER,
    }
    base: Any
    context: int
    tokenizer: Any
    vocab_size: int | None
    lowercase: bool
    dim: int
    layers: int
    heads: int
    dropout: float
    tokenizer_: Tokenizer
    frame_: tuple[int, int]
    length_: int

    def __sklearn_clone__(self) -> Self:
        """A clone starts from the same base, with what that has learned."""
        params = self.get_params(deep=False)
        base = params.pop("base")
        kept = {name: clone(value, safe=False) for name, value in params.items()}
        return type(self)(base, **kept)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; those of the base are its own."""
        found = super().get_params(deep)
        return {name: value for name, value in found.items() if not name.startswith("base__")}

    def _learn_preparation(self, X: Any, y: Any, weight: Tensor | None) -> None:
        if self.base is None:
            words = tokenizer_of(
                self.tokenizer, X, weight, SPECIAL, vocab_size=self.vocab_size,
                lowercase=self.lowercase,
            )  # fmt: skip
            self.tokenizer_, self.length_ = words, self.context
            self.frame_ = (words.number(FIRST), words.number(LAST))
        else:
            found = self._base = base_of(self.base)
            self.tokenizer_, self.frame_ = found.tokenizer, (found.first, found.last)
            self.length_ = min(self.context, found.context)

    _base: Base

    def _encoder(self, X: Any, y: Any) -> nn.Module:
        """The network below the head, of the base or new."""
        if self.base is None:
            return super()._made(X, y)
        net = self.__dict__.pop("_base").net
        for part in net.modules():
            if isinstance(getattr(part, "dropout", None), float):
                part.dropout = self.dropout
        assert isinstance(net, nn.Module)
        return net.requires_grad_(True)

    def _sizes(self, X: Any, y: Any) -> dict[str, Any]:
        return {
            "vocab": self.tokenizer_.size, "context": self.context, "dim": self.dim,
            "layers": self.layers, "heads": self.heads, "dropout": self.dropout,
            "hidden": 2 * self.dim, "separator": self.frame_[1],
        }  # fmt: skip

    def _space(self, X: Any) -> Space:
        return TokenSequence(self.tokenizer_.size)

    @property
    def network_(self) -> nn.Module:
        found: Any = self.energy_.net
        assert isinstance(found, nn.Module)
        return found
