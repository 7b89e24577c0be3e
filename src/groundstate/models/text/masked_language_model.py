"""A masked language model: what stands in the gaps of a text."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval
from groundstate.compute.reduce import current
from groundstate.compute.rows import Gaps, Ragged, Texts, Tokens, count, sum_items
from groundstate.compute.thread_policy import answering
from groundstate.data.text.pieces import cut, framed, sentence_pairs
from groundstate.data.text.tokenizer import Tokenizer
from groundstate.energy.base import Energy
from groundstate.energy.basic.labels import ClassEnergy
from groundstate.energy.spaces import Finite, RaggedOf, TokenSequence
from groundstate.errors import DataError, Unsupported
from groundstate.learn.base import History, Rule
from groundstate.learn.rules.masked import MaskedTokens
from groundstate.models import settings
from groundstate.models.rows.network import RowNetwork, pieces
from groundstate.models.text.vocabulary import TRANSFORMER, tokenizer_of
from groundstate.models.traits import Traits
from groundstate.nn.attention.pretrained import load_bert
from groundstate.nn.text.heads import FillsGaps, encode
from groundstate.registry import models

PAD, UNKNOWN, FIRST, LAST, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL = (PAD, UNKNOWN, FIRST, LAST, MASK)


@models.register(family="text", task="representation", role="sequence model", auto=False)
class MaskedLanguageModel(RowNetwork):
    r"""Tokens from all that stands around them.

    .. math:: e(x, y) = -\sum_{g\in\text{gaps}} \log p_\theta(y_g\mid x),\qquad
              p_\theta(\cdot\mid x) = \operatorname{softmax}(f_\theta(x)_g)

    X is a list, array or column of strings, a .txt or .jsonl file, or a folder of such files. In
    every step 15 % of the tokens are chosen: 80 % of them show [MASK], 10 % another token, 10 %
    themselves; the network, BERT, says what stood there. Without gaps, ``energy`` is the
    pseudo-likelihood: every token is asked for, given all others.

    Parameters
    ----------
    nsp : bool, default=False
        Learn also whether one sentence follows another; rows are pairs of consecutive sentences, in
        half of which the second is exchanged.
    network : "bert", ``MaskedBERT`` or a function that makes one, default="bert"
    context : int, default=128
        Tokens of a row at most; longer texts are cut.
    tokenizer : str, path or Tokenizer, default="word"
        A tokenizer, a file or folder that holds one, or the kind that is learned: "word", "char",
        or, with ``groundstate[text]``, "wordpiece", "bpe", "unigram".
    vocab_size : int, default=None
        Of a learned tokenizer.
    lowercase : bool, default=True
        Of a learned tokenizer.
    dim, layers, heads : int, default=128, 2 and 4
        Sizes of the network.
    dropout : float, default=0.1
    mask_rate : float, default=0.15
        Share of the tokens that are chosen.

    Attributes
    ----------
    energy_ : ClassEnergy
    tokenizer_ : Tokenizer

    Examples
    --------
    >>> from groundstate import MaskedLanguageModel
    >>> texts = ["the cat purrs", "the dog barks", "my cat purrs", "my dog barks"] * 8
    >>> model = MaskedLanguageModel(dim=16, layers=1, heads=2, dropout=0.0, lr=0.01, max_epochs=60,
    ...     patience=None, val_fraction=0.0, random_state=0).fit(texts)
    >>> model.fill_mask("the [MASK] barks", top=1)[0][0]
    'dog'
    """

    rows: ClassVar[str] = "text"
    traits = Traits(
        program=None,
        space={
            "lr": settings.Real(1e-4, 1e-2, log=True),
            "dropout": settings.Real(0.0, 0.4),
        },
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "nsp": ["boolean"],
        "context": [Interval(Integral, 5, None, closed="left")],
        **TRANSFORMER,
        "mask_rate": [Interval(Real, 0, 1, closed="neither")],
    }
    nsp: bool
    context: int
    tokenizer: Any
    vocab_size: int | None
    lowercase: bool
    dim: int
    layers: int
    heads: int
    dropout: float
    mask_rate: float
    tokenizer_: Tokenizer

    def __init__(
        self,
        nsp: bool = False,
        *,
        network: Any = "bert",
        context: int = 128,
        tokenizer: Any = "word",
        vocab_size: int | None = None,
        lowercase: bool = True,
        dim: int = 128,
        layers: int = 2,
        heads: int = 4,
        dropout: float = 0.1,
        mask_rate: float = 0.15,
        network_params: dict[str, Any] | None = None,
        max_epochs: int = 20,
        batch_size: int = 32,
        optimizer: Any = "adamw",
        lr: float = 1e-3,
        weight_decay: float = 0.01,
        val_fraction: float = 0.1,
        patience: int | None = 10,
        schedule: Any = None,
        clip_norm: float | None = 1.0,
        precision: str = "auto",
        compile: bool | str = False,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    # --- learning ------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        texts, _, _ = super()._checked(X, None)
        weight = self._checked_weight(sample_weight, texts)
        if not self._goes_on:
            given = None if weight is None else torch.as_tensor(np.asarray(weight))
            self._learn_preparation(texts, None, given)
        rows, text = self._cut(texts)
        return super()._fit(rows, None, None if weight is None else np.asarray(weight)[text])

    @property
    def _goes_on(self) -> bool:
        return (self.warm_start or self._partial) and hasattr(self, "energy_")

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        return (X, None, {}) if isinstance(X, Tokens) else super()._checked(X, y)

    def _learn_preparation(self, X: Any, y: Any, weight: Tensor | None) -> None:
        if isinstance(X, Texts):
            self.tokenizer_ = tokenizer_of(
                self.tokenizer, X, weight, SPECIAL, vocab_size=self.vocab_size,
                lowercase=self.lowercase,
            )  # fmt: skip

    def _cut(self, texts: Texts) -> tuple[Tokens, NDArray[np.int64]]:
        """Rows of at most ``context`` tokens, and the text of each."""
        length = self._length if self._goes_on else self.context
        first, last = self._number(FIRST), self._number(LAST)
        if self.nsp:
            rows, text = sentence_pairs(texts, self.tokenizer_, length, first, last)
            return rows, text.numpy()
        found, text = cut(self.tokenizer_.encode(texts).tokens, length - 2)
        return Tokens.of(framed(found, first, last)), text.cpu().numpy()

    @property
    def _length(self) -> int:
        """Tokens of a row at most."""
        net: Any = self.energy_.net
        return int(net.net.context)

    def _number(self, token: str) -> int:
        return self.tokenizer_.number(token)

    def _prepared(self, X: Any) -> Any:
        return X if isinstance(X, Tokens) else self._cut(X)[0]

    def _sizes(self, X: Any, y: Any) -> dict[str, Any]:
        return {
            "vocab": self.tokenizer_.size, "context": self.context, "dim": self.dim,
            "layers": self.layers, "heads": self.heads, "dropout": self.dropout, "nsp": self.nsp,
            "separator": self._number(LAST),
        }  # fmt: skip

    def _energy_of(self, net: nn.Module, X: Any, y: Any) -> Energy:
        return _energy(net, self.tokenizer_)

    def _loss(self, energy: Energy) -> Rule:
        return self._rule(1.0)

    def _rule(self, gaps: float) -> MaskedTokens:
        special = tuple(self._number(t) for t in SPECIAL)
        return MaskedTokens(
            self._number(MASK), special, self.tokenizer_.size, self.mask_rate, gaps, self.nsp,
            self._number(LAST),
        )  # fmt: skip

    def _run(self, plan: Any, data: Any, weight: Any, callbacks: Any, checked: bool) -> History:
        tokens = data["x"].tokens
        special = torch.tensor(plan.rule.special, device=tokens.device)
        own = (~torch.isin(tokens.values, special)).double()
        each = sum_items(own, tokens.offsets)
        w = torch.ones_like(each) if weight is None else weight.double()
        plan.rule.gaps = max(1e-9, self.mask_rate * current().weighted_mean(each, w))
        return super()._run(plan, data, weight, callbacks, checked)

    # --- answers -------------------------------------------------------------------------

    def fill_mask(self, text: str, top: int = 5) -> Any:
        """What stands at the [MASK] of a text: the ``top`` most probable tokens with their
        probabilities; for several masks a list of such lists."""
        check_is_fitted(self, "energy_")
        ids = self.tokenizer_.encode(text)
        mask = self._number(MASK)
        if mask not in ids:
            raise DataError(f"the text holds no {MASK}: {text!r:.80}")
        if len(ids) > self._length - 2:
            raise DataError(
                f"the text has {len(ids)} tokens, the model reads {self._length - 2} at once; shorten "
                "it around its gaps, or fit with a larger context"
            )
        net: Any = self.energy_.net
        rows = framed(Ragged.of([ids], torch.int64), self._number(FIRST), self._number(LAST))
        with torch.no_grad():
            scores = net(Tokens.of(rows).to(self.energy_.placement()[0])).values
        best = scores.softmax(-1).topk(min(top, scores.shape[1]))
        found = [
            [(self.tokenizer_.vocabulary[i], p) for i, p in zip(row, values, strict=True)]
            for row, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]
        return found[0] if len(found) == 1 else found

    @torch.no_grad()
    def follows(self, first: Sequence[str], second: Sequence[str]) -> NDArray[np.float64]:
        """Probability that each second sentence follows the first one, ``(n,)``; needs ``nsp=True``."""
        check_is_fitted(self, "energy_")
        net: Any = self.network_
        if not net.nsp:
            raise Unsupported("the model has not learned what follows; fit it with nsp=True")
        if len(first) != len(second):
            raise DataError(f"{len(first)} first and {len(second)} second sentences are no pairs")
        begin, end = self._number(FIRST), self._number(LAST)
        half = (self._length - 3) // 2
        rows = [
            [begin, *a[:half], end, *b[:half], end]
            for a, b in ((self.tokenizer_.encode(a), self.tokenizer_.encode(b))
                         for a, b in zip(first, second, strict=True))
        ]  # fmt: skip
        made = Tokens.of(Ragged.of([torch.tensor(row) for row in rows], torch.int64))
        found = []
        with answering(self.energy_, made.tokens.values):
            for part in pieces(made, self.energy_.placement()[0], 256):
                scores = net.follows(encode(net, part.tokens)[0])
                found.append(scores.softmax(-1)[:, 0].double().cpu())
        return torch.cat(found).numpy()

    def energy(self, X: Any, y: Any = None, z: Any = None) -> NDArray[np.float64]:
        r"""Pseudo-likelihood :math:`-\sum_t\log p(x_t\mid x_{-t})` of each text, ``(n_samples,)``: every
        token is asked for while a mask stands in its place."""
        return self._pseudo(X)[0]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        r"""Mean of :math:`\log p(x_t\mid x_{-t})` over all tokens in nats; high is good."""
        e, tokens = self._pseudo(X)
        w = np.ones(len(e)) if sample_weight is None else np.asarray(sample_weight, float)
        return float(-(w @ e) / (w @ tokens))

    @torch.no_grad()
    def _pseudo(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        check_is_fitted(self, "energy_")
        texts: Any = RowNetwork._checked(self, X, None)[0]
        first, last = self._number(FIRST), self._number(LAST)
        found, owner = cut(self.tokenizer_.encode(texts).tokens, self._length - 2)
        rows = framed(found, first, last)
        copy = rows.row[_inner(rows)]  # one copy of a row for each of its tokens
        place = _inner(rows) - rows.offsets[copy]
        values = torch.zeros(count(texts), dtype=torch.float64)
        device = self.energy_.placement()[0]
        net: Any = self.energy_.net
        with answering(self.energy_, rows.values):
            for at in torch.arange(len(copy)).split(256):
                part = rows.take(copy[at])
                truth = part.values[part.offsets[:-1] + place[at]]
                seen = part.values.clone()
                seen[part.offsets[:-1] + place[at]] = self._number(MASK)
                one = Ragged._of(place[at], torch.arange(len(at) + 1))
                asked = Gaps(Ragged._of(seen, part.offsets), torch.zeros(len(at)).long(), one)
                logp = net(asked.to(device)).values.log_softmax(-1).cpu()
                own = logp.gather(1, truth[:, None])[:, 0].double()
                values.index_add_(0, owner[copy[at]], -own)
        tokens = torch.zeros(count(texts), dtype=torch.int64)
        tokens.index_add_(0, owner, found.lengths)
        return values.numpy(), tokens.numpy()

    @torch.no_grad()
    def transform(self, X: Any) -> NDArray[np.float32]:
        """The mean vector of the tokens of each text, ``(n_samples, dim)``."""
        check_is_fitted(self, "energy_")
        texts: Any = RowNetwork._checked(self, X, None)[0]
        found, owner = cut(self.tokenizer_.encode(texts).tokens, self._length - 2)
        rows = Tokens.of(framed(found, self._number(FIRST), self._number(LAST)))
        net: Any = self.energy_.net
        sums = []
        for part in pieces(rows, self.energy_.placement()[0], 64):
            hidden, real = encode(net.net, part.tokens)
            sums.append((hidden * real[..., None]).sum(1).cpu())
        total = torch.zeros(count(texts), sums[0].shape[1]).index_add_(0, owner, torch.cat(sums))
        n = torch.zeros(count(texts)).index_add_(0, owner, (found.lengths + 2).float())
        return (total / n[:, None]).numpy()

    @property
    def network_(self) -> nn.Module:
        net: Any = self.energy_.net
        assert isinstance(net.net, nn.Module)
        return net.net

    # --- checkpoints ---------------------------------------------------------------------

    @classmethod
    def from_pretrained(cls, folder: str | Path, **settings: Any) -> Self:
        """A fitted model from a folder with a BERT checkpoint and its tokenizer.

        Nothing is downloaded. ``fit`` with ``warm_start=True`` goes on from its weights.

        Parameters
        ----------
        folder : with config.json, model.safetensors and tokenizer.json (or vocab.txt)
        settings : other parameters of the constructor
        """
        tokenizer = Tokenizer.load(folder)
        net = load_bert(folder, separator=tokenizer.number(LAST))
        if tokenizer.size != net.vocab:
            raise DataError(
                f"the tokenizer of {folder} has {tokenizer.size} tokens, its network {net.vocab}"
            )
        sizes = {"context": net.context, "dim": net.dim, "layers": net.layers, "heads": net.heads}
        model = cls(net.nsp, **{"warm_start": True, **sizes, **settings})
        model.tokenizer_ = tokenizer
        model.energy_ = _energy(net, tokenizer).eval()
        model.history_, model.n_iter_ = History(converged=True, stop="loaded"), 1
        model._moments, model._epochs = None, 0
        return model


def _energy(net: Any, tokenizer: Tokenizer) -> ClassEnergy:
    k = tokenizer.size
    filler = FillsGaps(net, tokenizer.number(MASK))
    return ClassEnergy(filler, TokenSequence(k), RaggedOf(Finite(k)), normalise=True)


def _inner(rows: Ragged) -> Tensor:
    """Places of all tokens but the first and last of each row."""
    inside = torch.ones(len(rows.values), dtype=torch.bool)
    inside[rows.offsets[:-1]] = False
    inside[rows.offsets[1:] - 1] = False
    return inside.nonzero().squeeze(1)
