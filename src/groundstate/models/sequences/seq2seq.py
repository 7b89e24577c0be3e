"""Texts to texts: an encoder, a decoder, and beam search."""

from __future__ import annotations

from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions, check_sample_weight
from groundstate.compute.random import Key
from groundstate.compute.reduce import current
from groundstate.compute.rows import Ragged, Texts, Tokens, count
from groundstate.compute.thread_policy import answering
from groundstate.data.rows import rows_of
from groundstate.data.text.pairs import read_pairs
from groundstate.data.text.tokenizer import KINDS, Tokenizer
from groundstate.energy.base import Energy
from groundstate.energy.networks.sequence import SequenceEnergy
from groundstate.energy.spaces import TokenSequence
from groundstate.errors import DataError, ShapeError
from groundstate.infer import decode
from groundstate.learn import NextToken
from groundstate.learn.base import Rule
from groundstate.math.sequences import bleu
from groundstate.models.base import Plan
from groundstate.models.networks.seeds import init_key
from groundstate.models.rows.making import make_network
from groundstate.models.rows.network import RowNetwork, pieces
from groundstate.models.sequences.alignment import Alignment
from groundstate.nn.seq2seq.reader import Translate
from groundstate.registry import models

PAD, BOS, EOS = "[PAD]", "[BOS]", "[EOS]"
SPECIAL = (PAD, BOS, EOS)
NAMES = {"rnn": "seq2seq_rnn", "transformer": "seq2seq_transformer"}
SMALL: dict[str, dict[str, Any]] = {  # sizes for data of thousands of pairs
    "rnn": {"dim": 128, "hidden": 256, "bidirectional": True},
    "transformer": {"dim": 128, "heads": 4, "layers": 2, "norm_first": True, "dropout": 0.1},
}
ROWS = 64  # sources that are decoded at once


@models.register(family="sequences", task="translation", role="sequence model", auto=False)
class Seq2Seq(RowNetwork):
    r"""Texts to texts: a network reads the source and writes the target, token by token.

    .. math:: e(x, y) = -\sum_{t} \log p(y_t \mid y_{<t}, x), \qquad
              \hat y(x) = \arg\min_y e(x, y)

    X and y are lists of strings, or X alone is a .tsv or .jsonl file with sources and targets.
    Learning lowers the mean of :math:`-\log p` over target tokens with the true tokens before
    (teacher forcing); prediction keeps ``beams`` beginnings.

    Parameters
    ----------
    network : "transformer", "rnn", module, class or function, default="transformer"
        One made by hand has ``forward(src, tgt)``, ``start(src)`` and ``step(token, cache)``, as
        ``groundstate.nn.Transformer``.
    attention : bool or "additive", default=True
        Of "rnn": whether the decoder looks at all states of the encoder, or at the last alone.
    tokenizer : str or Tokenizer, default="word"
        "word", "char", "byte", "bpe", "wordpiece" or "unigram"; learned from the sources. One made
        by hand has the special tokens ``[PAD]``, ``[BOS]`` and ``[EOS]``.
    target_tokenizer : str, Tokenizer or None, default=None
        Of the targets; None is of the kind of ``tokenizer``, learned from the targets.
    shared : bool, default=False
        One vocabulary, learned from sources and targets together.
    vocab_size : int or None, default=None
        Tokens of a learned vocabulary at most.
    max_length : int or None, default=None
        Tokens of a prediction at most; None is twice the longest target of the fit.
    beams : int, default=4
        Beginnings kept in the search; 1 is greedy.
    length_penalty : float, default=0.0
        α: beginnings are compared by energy / length^α.
    label_smoothing : float, default=0.0
        ε of the loss.
    metric : "bleu" or "exact", default="bleu"
        What ``score`` is: BLEU from 0 to 100, or the share of targets hit exactly.

    Attributes
    ----------
    tokenizer_, target_tokenizer_ : Tokenizer

    Examples
    --------
    >>> from groundstate import Seq2Seq
    >>> X = ["one dog", "two dogs", "one cat", "two cats"] * 8
    >>> y = ["ein Hund", "zwei Hunde", "eine Katze", "zwei Katzen"] * 8
    >>> small = {"dim": 16, "hidden": 32}
    >>> model = Seq2Seq("rnn", small, lr=2e-2, max_epochs=30, val_fraction=0, random_state=0)
    >>> model.fit(X, y).predict(["two cats", "one dog"]).tolist()
    ['zwei Katzen', 'ein Hund']
    """

    rows: ClassVar[str] = "text"
    _takes_target: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "attention": ["boolean", StrOptions({"dot", "additive"})],
        "tokenizer": [StrOptions(set(KINDS)), Tokenizer],
        "target_tokenizer": [StrOptions(set(KINDS)), Tokenizer, None],
        "shared": ["boolean"],
        "vocab_size": [Interval(Integral, 4, None, closed="left"), None],
        "max_length": [Interval(Integral, 1, None, closed="left"), None],
        "beams": [Interval(Integral, 1, None, closed="left")],
        "length_penalty": [Interval(Real, 0, None, closed="left")],
        "label_smoothing": [Interval(Real, 0, 1, closed="left")],
        "metric": [StrOptions({"bleu", "exact"})],
    }
    _store_private: ClassVar[tuple[str, ...]] = ("_moments", "_epochs", "_tokens")
    tokenizer_: Tokenizer
    target_tokenizer_: Tokenizer
    _tokens: float

    def __init__(
        self,
        network: Any = "transformer",
        network_params: dict[str, Any] | None = None,
        *,
        attention: bool | str = True,
        tokenizer: Any = "word",
        target_tokenizer: Any = None,
        shared: bool = False,
        vocab_size: int | None = None,
        max_length: int | None = None,
        beams: int = 4,
        length_penalty: float = 0.0,
        label_smoothing: float = 0.0,
        metric: str = "bleu",
        max_epochs: int = 100,
        batch_size: int = 32,
        optimizer: Any = "adamw",
        lr: float = 1e-3,
        weight_decay: float = 1e-2,
        val_fraction: float = 0.1,
        patience: int | None = 10,
        schedule: Any = None,
        clip_norm: float | None = 1.0,
        precision: str = "auto",
        compile: bool | str = False,
        warm_start: bool = False,
        verbose: Any = False,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    # --- texts and tokens ------------------------------------------------------------------

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        if y is None and isinstance(X, str | Path):
            X, y = read_pairs(X)
        return super()._checked(X, y)

    def _row_target(self, y: Any, rows: Any) -> tuple[Texts, dict[str, Any]]:
        texts: Any = self._targets_of(y)
        if len(texts) != count(rows):
            raise ShapeError(f"X has {count(rows)} rows, y has {len(texts)}; give one for each")
        return texts, {}

    def _example_target(self, X: Any) -> Any:
        return np.array([text.upper() for text in X.strings()], dtype=object)

    def _targets_of(self, y: Any) -> Texts:
        try:
            found: Any = rows_of(y, "text").rows
        except DataError as error:
            raise DataError(f"targets of {type(self).__name__} are texts: {error}") from None
        assert isinstance(found, Texts)
        return found

    def _vocabularies(self, X: Texts, y: Texts, weight: Tensor | None) -> None:
        w = None if weight is None else weight.double().tolist()
        sources, targets = X.strings(), y.strings()
        if self.shared:
            both = None if w is None else w + w
            self.tokenizer_ = self._vocabulary(self.tokenizer, sources + targets, both)
            self.target_tokenizer_ = self.tokenizer_
            return
        other = self.tokenizer if self.target_tokenizer is None else self.target_tokenizer
        self.tokenizer_ = self._vocabulary(self.tokenizer, sources, w)
        self.target_tokenizer_ = self._vocabulary(other, targets, w)

    def _vocabulary(self, kind: Any, texts: list[str], weight: list[float] | None) -> Tokenizer:
        if isinstance(kind, Tokenizer):
            for token in SPECIAL:
                kind.number(token)
            return kind
        return Tokenizer.train(
            texts=texts, weight=weight, kind=kind, vocab_size=self.vocab_size,
            special_tokens=SPECIAL, reduce=current(),
        )  # fmt: skip

    def _prepared(self, X: Any) -> Tokens:
        found = self.tokenizer_.encode(X)
        ended = _ended(found.tokens, self.tokenizer_.number(EOS))
        return Tokens(ended, found.content).to(X.device)

    def _numbers(self, y: Texts, length: int | None = None) -> Tensor:
        """Target tokens with their end, ``(n, length)``, filled up with padding; what is longer is
        cut."""
        coder = self.target_tokenizer_
        rows = _ended(coder.encode(y).tokens, coder.number(EOS))
        padded = rows.padded(coder.number(PAD))
        if length is not None:
            more = max(0, length - padded.shape[1])
            padded = nn.functional.pad(padded[:, :length], (0, more), value=coder.number(PAD))
        return padded.to(y.device)

    # --- learning --------------------------------------------------------------------------

    def _build(self, X: Any, y: Any, weight: Tensor | None) -> Plan:
        goes_on = (self.warm_start or self._partial) and hasattr(self, "energy_")
        if not goes_on:
            self._vocabularies(X, y, weight)
        numbers = self._numbers(y)
        counts = (numbers != self.target_tokenizer_.number(PAD)).sum(1)
        w = torch.ones_like(counts, dtype=torch.float64) if weight is None else weight.double()
        if not goes_on:
            self._tokens = current().weighted_mean(counts, w)
        # rows without weight change nothing
        longest = int(current().max(counts[w > 0].max()))
        return super()._build(X, self._numbers(y, longest), weight)

    def _sizes(self, X: Tokens, y: Tensor) -> dict[str, Any]:
        longest = int(current().max(X.tokens.lengths.max()))
        sizes = {
            "src_vocab": self.tokenizer_.size, "tgt_vocab": self.target_tokenizer_.size,
            "padding": self.target_tokenizer_.number(PAD),
            "max_len": max(longest, self._length(y)) + 1,
        }  # fmt: skip
        if isinstance(self.network, str) and self.network in SMALL:
            sizes = {**SMALL[self.network], **sizes, "attention": self.attention}
        return sizes

    def _length(self, y: Tensor) -> int:
        return self.max_length or 2 * y.shape[1]

    def _made(self, X: Any, y: Any) -> nn.Module:
        name = self.network
        if isinstance(name, str):
            name = NAMES.get(name, name)
        key = init_key(self.random_state).fold("init")
        return make_network(name, self._sizes(X, y), self.network_params or {}, self.rows, key)

    def _energy_of(self, net: nn.Module, X: Any, y: Tensor) -> Energy:
        target = self.target_tokenizer_
        return SequenceEnergy(
            Translate(net, target.number(PAD)), target.size, self._length(y),
            TokenSequence(self.tokenizer_.size), bos=target.number(BOS), ignore=target.number(PAD),
            end=target.number(EOS),
        )  # fmt: skip

    def _loss(self, energy: Energy) -> Rule:
        return NextToken(self._tokens, self.label_smoothing)

    @property
    def network_(self) -> nn.Module:
        net: Any = self.energy_.net
        return net.net

    # --- answers ---------------------------------------------------------------------------

    def predict(self, X: Any) -> Any:
        """The best target of each source that the beam found, ``(n_samples,)`` strings."""
        return self._decode(X, "beam", 1, beams=self.beams, length_penalty=self.length_penalty)[
            :, 0
        ]

    def sample(
        self,
        X: Any,
        n: int = 1,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        random_state: Any = None,
    ) -> Any:
        """n independent targets of each source, ``(n_samples, n)`` strings."""
        generator = Key.of(self.random_state if random_state is None else random_state).torch()
        return self._decode(
            X, "sample", n, temperature=temperature, top_k=top_k, top_p=top_p, generator=generator
        )

    def _decode(self, X: Any, method: Any, n: int, **options: Any) -> Any:
        x, _ = self._rows(X)
        found: list[list[str]] = []
        with answering(self.energy_, x):
            for rows in pieces(x, self.energy_.placement()[0], ROWS):
                if not count(rows):
                    continue
                out = decode(self.energy_, method, given={"x": rows}, n=n, **options)
                found += [[self._text(one) for one in each] for each in out.tokens.tolist()]
        made = np.empty((len(found), n), dtype=object)
        if found:
            made[:] = found
        return made

    def _text(self, numbers: list[int]) -> str:
        coder = self.target_tokenizer_
        end = coder.number(EOS)
        return coder.decode(numbers[: numbers.index(end)] if end in numbers else numbers)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """BLEU (0 to 100) of the predictions, or the share that is exactly right.

        Exact is compared after the tokenizer, to which "dogs." and "dogs ." may be the same.
        """
        predicted, right = self.predict(X), self._targets_of(y).strings()
        if len(right) != len(predicted):
            raise ShapeError(f"X has {len(predicted)} rows, y has {len(right)}; give one for each")
        weight = None if sample_weight is None else check_sample_weight(sample_weight, predicted)
        if self.metric == "bleu":
            return bleu(predicted.tolist(), right, sample_weight=weight).score
        coder = self.target_tokenizer_
        hits = [coder.decode(coder.encode(b)) == a for a, b in zip(predicted, right, strict=True)]
        return float(np.average(hits, weights=weight))

    def log_prob(self, X: Any, y: Any) -> Any:
        """:math:`\\log p(y\\mid x)` of each pair, ``(n_samples,)``."""
        return -self.energy(X, y)

    def alignment(self, source: str, target: str | None = None) -> Alignment:
        """Where in the source each token of a target looked; None is the predicted target."""
        target = str(self.predict([source])[0]) if target is None else target
        x, _ = self._rows([source])
        y = self._numbers(Texts.of([target])).to(self.energy_.placement()[0])
        energy: Any = self.energy_
        tokens = nn.functional.pad(y[:, :-1], (1, 0), value=energy.bos)
        with answering(self.energy_, x):
            weights = energy.net.alignment(tokens, x)[0].cpu().numpy()
        read, wrote = self.tokenizer_.vocabulary, self.target_tokenizer_.vocabulary
        return Alignment(
            weights, [read[i] for i in x.tokens.values.tolist()], [wrote[i] for i in y[0].tolist()]
        )

    def _encoded(self, name: str, values: Any) -> Any:
        if name != "y":
            return super()._encoded(name, values)
        energy: Any = self.energy_
        return self._numbers(self._targets_of(values), energy.length).numpy()

    def _decoded(self, name: str, values: Any, home: Any) -> Any:
        if name != "y":
            return super()._decoded(name, values, home)
        flat = [self._text(row) for row in values.reshape(-1, values.shape[-1]).tolist()]
        return np.array(flat, dtype=object).reshape(values.shape[:-1])


def _ended(rows: Ragged, end: int) -> Ragged:
    """Rows with one more symbol each."""
    lengths = rows.lengths + 1
    offsets = torch.cat((lengths.new_zeros(1), lengths.cumsum(0)))
    values = rows.values.new_full((int(offsets[-1]),), end)
    inside = torch.ones(len(values), dtype=torch.bool, device=values.device)
    inside[offsets[1:] - 1] = False
    values[inside] = rows.values
    return Ragged(values, offsets)
