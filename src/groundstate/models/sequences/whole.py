"""How estimators of whole sequences take them: items of unit scale, texts as tokens, buckets."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.reduce import current
from groundstate.compute.rows import Texts
from groundstate.data.rows import READERS
from groundstate.data.text.tokenizer import Tokenizer
from groundstate.energy.base import Energy
from groundstate.energy.spaces import Space, TokenSequence
from groundstate.errors import DataError, ShapeError
from groundstate.learn.base import Rule
from groundstate.learn.solvers.networks.estimator import NetworkTraining
from groundstate.models import settings
from groundstate.models.arrays import Home
from groundstate.models.networks.seeds import init_key
from groundstate.models.rows.kinds import KINDS, RowKind, check_form
from groundstate.models.rows.network import RowNetwork
from groundstate.models.traits import Traits
from groundstate.nn.recurrent.items import StandardizeItems, TokenVectors
from groundstate.nn.recurrent.sequence_network import READOUTS


class SequenceRows(RowNetwork):
    """Base of the estimators that answer once for a sequence.

    X is a list of arrays ``(length, d)``, an array ``(n, length, d)``, a pair of such an array and the
    lengths of its rows, a long table with the columns id, time, the items and the target (or its path),
    or texts. Items are standardised by the training rows; texts become tokens and these vectors.

    Parameters
    ----------
    network : str, module, class or function
        "gru", "lstm", "rnn", "tcn" (causal convolutions), "transformer", or what makes a module from
        ``Ragged`` rows to ``(n, outputs)``; it gets ``in_features``, ``num_classes`` and ``readout``.
    readout : "last", "mean", "max", "attention" or None
        What becomes of the states of all items; None is the network's own.
    bucket : bool
        Batches of sequences of about the same length.
    tokens : "word" or "char"
        What a token of a text is.
    embedding : int
        Length of the vector of a token.

    Attributes
    ----------
    tokenizer_ : Tokenizer, where X are texts
    n_features_in_ : int
        d, where X are no texts.
    """

    rows: ClassVar[str] = "sequence"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "readout": [StrOptions(set(READOUTS)), None],
        "bucket": ["boolean"],
        "tokens": [StrOptions({"word", "char"})],
        "embedding": [Interval(Integral, 1, None, closed="left")],
    }
    traits = Traits(
        space={
            "lr": settings.Real(1e-4, 3e-2, log=True),
            "network": settings.Choice("gru", "lstm", "tcn", "transformer"),
            "readout": settings.Choice("last", "mean", "max", "attention"),
        }
    )
    readout: str | None
    bucket: bool
    tokens: str
    embedding: int
    tokenizer_: Tokenizer
    _entry: nn.Module

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        return _kind(X).learned(self, X, y)

    def _rows(self, X: Any) -> tuple[Any, Home]:
        rows, home = _kind(X).asked(self, X)
        rows = self._prepared(rows)
        check_form(self, rows)
        return rows, home

    def _learn_preparation(self, X: Any, y: Any, weight: Tensor | None) -> None:
        super()._learn_preparation(X, y, weight)
        self.__dict__.pop("tokenizer_", None)
        self.__dict__.pop("n_features_in_", None)
        if isinstance(X, Texts):
            self.tokenizer_ = Tokenizer.train(
                kind="word" if self.tokens == "word" else "char", texts=X, lowercase=True, reduce=current(),
                weight=None if weight is None else weight.double().tolist(),
            )  # fmt: skip
            key = init_key(self.random_state).fold("tokens").torch()
            self._entry = TokenVectors(self.tokenizer_.size, self.embedding, generator=key)
            return
        if len(X.item_shape) != 1:
            raise ShapeError(f"items must have shape (d,), got {X.item_shape}")
        self.n_features_in_ = X.item_shape[0]
        self._entry = StandardizeItems(self.n_features_in_).to(X.device, X.values.dtype)
        self._entry.fit_rows(X, weight)

    def _prepared(self, X: Any) -> Any:
        if isinstance(X, Texts) != hasattr(self, "tokenizer_"):
            was, now = ("texts", "numbers") if hasattr(self, "tokenizer_") else ("numbers", "texts")
            raise DataError(f"{type(self).__name__} was fitted to {was}, X holds {now}")
        return self.tokenizer_.encode(X).to(X.device) if isinstance(X, Texts) else X

    def _space(self, X: Any) -> Space:
        tokens = hasattr(self, "tokenizer_")
        return TokenSequence(self.tokenizer_.size) if tokens else super()._space(X)

    def _sizes(self, X: Any, y: Any) -> dict[str, Any]:
        wide = self.embedding if hasattr(self, "tokenizer_") else self.n_features_in_
        own = {} if self.readout is None else {"readout": self.readout}
        return {**super()._sizes(X, y), "in_features": wide, **own}

    def _energy_of(self, net: nn.Module, X: Any, y: Any) -> Energy:
        entry = self.__dict__.pop("_entry")  # from here on a part of the energy
        return super()._energy_of(nn.Sequential(entry, net), X, y)

    def _training(self, rule: Rule, total: float) -> NetworkTraining:
        training = super()._training(rule, total)
        steps: Any = training.solver
        return replace(training, solver=replace(steps, bucket=self.bucket))


def _kind(X: Any) -> RowKind:
    return KINDS["text" if READERS["text"].takes(X) else "sequence"]
