"""A language model: the next token of a text."""

from __future__ import annotations

from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.reduce import current
from groundstate.compute.rows import Columns, Spans, Texts, count
from groundstate.compute.thread_policy import answering
from groundstate.data.rows import rows_of
from groundstate.data.text.blocks import NOTHING, Blocks, blocks_of, lengths_of
from groundstate.data.text.token_files import END, texts_of_tokens, tokens_in
from groundstate.data.text.tokenizer import KINDS, Tokenizer
from groundstate.energy.base import Energy
from groundstate.energy.networks.sequence import SequenceEnergy
from groundstate.errors import DataError
from groundstate.learn import L2
from groundstate.learn.base import History
from groundstate.learn.rules.tokens import NextToken
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.rows.network import RowNetwork, pieces
from groundstate.models.text.generation import Generates
from groundstate.models.text.vocabulary import TRANSFORMER, tokenizer_of
from groundstate.models.traits import Traits
from groundstate.nn.attention.embed import POSITIONS
from groundstate.nn.attention.pretrained import load_gpt2
from groundstate.registry import models

NETWORKS = {"gru": "gru_lm", "lstm": "lstm_lm"}  # names of architectures


@models.register(family="text", task="density", role="sequence model", auto=False)
class LanguageModel(Generates, RowNetwork):
    r"""Texts token by token.

    .. math:: e(x) = -\log p(x) = -\sum_t \log p_\theta(x_t \mid x_{<t}),\qquad
              p_\theta(\cdot\mid x_{<t}) = \operatorname{softmax}(f_\theta(x_{<t}))

    X is a list, array or column of strings, a .txt or .jsonl file, or a folder of such files; or,
    where that is larger than memory, the token numbers that ``groundstate.data.write_tokens`` made
    of such files, a .npy (or .bin of 16 bits) file or a mapped array, with its ``tokenizer``. Each
    text, with an end token behind it, is cut into blocks of ``context`` tokens; the network predicts
    every token of a block from those before it. Learning lowers the mean of :math:`-\log p` over
    all tokens.

    Parameters
    ----------
    network : "gpt", "gru", "lstm", module, class or function, default="gpt"
        A causal network from tokens ``(n, T)`` to scores ``(n, T, vocab)``. "gpt" is a decoder of
        pre-norm transformer blocks with GELU; "gru" and "lstm" have a learned first state. All
        score with the embedding.
    context : int, default=256
        Tokens that are seen at once.
    tokenizer : str, path or Tokenizer, default="byte"
        A tokenizer, a file or folder that holds one, or the kind that is learned: "byte", "char",
        "word", or, with ``groundstate[text]``, "bpe", "wordpiece", "unigram".
    vocab_size : int, default=None
        Of a learned tokenizer.
    dim, layers, heads : int, default=128, 4 and 4
        Sizes of the network; the state of a recurrent one has twice ``dim`` units.
    dropout : float, default=0.0
    positions : "learned", "rope", "sinusoidal" or "none", default="learned"
        Of "gpt".
    stride : int, default=None
        Tokens from the start of a block to that of the next in training, by default ``context``.
        Blocks that overlap show a token in several places; they need ``val_fraction=0``.

    Attributes
    ----------
    energy_ : SequenceEnergy
    tokenizer_ : Tokenizer
    end_ : int, number of the end token

    Examples
    --------
    >>> from groundstate import LanguageModel
    >>> texts = ["the cat sat on the mat.", "the dog sat on the log."] * 4
    >>> model = LanguageModel("gru", context=32, dim=16, layers=1, lr=0.02, max_epochs=40,
    ...     batch_size=4, val_fraction=0.0, random_state=0).fit(texts)
    >>> bool(model.perplexity(texts) < 1.2)
    True
    >>> model.generate("the cat s", max_new_tokens=20, method="greedy")
    'the cat sat on the mat.'
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
        "context": [Interval(Integral, 1, None, closed="left")],
        **TRANSFORMER,
        "positions": [StrOptions(set(POSITIONS))],
        "stride": [Interval(Integral, 1, None, closed="left"), None],
    }
    context: int
    tokenizer: Any
    vocab_size: int | None
    dim: int
    layers: int
    heads: int
    dropout: float
    positions: str
    stride: int | None
    tokenizer_: Tokenizer
    end_: int
    energy_: SequenceEnergy

    def __init__(
        self,
        network: Any = "gpt",
        context: int = 256,
        *,
        tokenizer: Any = "byte",
        vocab_size: int | None = None,
        dim: int = 128,
        layers: int = 4,
        heads: int = 4,
        dropout: float = 0.0,
        positions: str = "learned",
        stride: int | None = None,
        network_params: dict[str, Any] | None = None,
        max_epochs: int = 20,
        batch_size: int = 32,
        optimizer: Any = "adamw",
        lr: float = 1e-3,
        weight_decay: float = 0.1,
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
        if self.stride is not None and self.stride < self.context and self._held_out:
            raise ValueError(
                f"blocks of {self.context} tokens every {self.stride} overlap, so that held-out "
                "ones would be learned from; use val_fraction=0, or stride=None"
            )
        texts = self._given(X)
        weight = self._checked_weight(sample_weight, texts)
        given = None if weight is None else torch.as_tensor(np.asarray(weight))
        rows, text = self._cut(texts, given)
        return super()._fit(rows, None, None if weight is None else np.asarray(weight)[text])

    def _given(self, X: Any) -> Texts | Spans:
        """Texts; of token numbers, which only the tokenizer that made them can read, the spans."""
        numbers = tokens_in(X)
        if numbers is None:
            found: Any = super()._checked(X, None)[0]
            return found
        if not self._goes_on:
            if isinstance(self.tokenizer, str) and self.tokenizer in KINDS:
                raise DataError(
                    f"X holds token numbers, from which no tokenizer of kind {self.tokenizer!r} can "
                    "be learned; pass the Tokenizer that made them, or its file, as tokenizer="
                )
            self._set_tokenizer(tokenizer_of(self.tokenizer, Texts.of([]), None, [END]))
        return texts_of_tokens(numbers, self.end_, self.tokenizer_.size)

    def _set_tokenizer(self, found: Tokenizer) -> None:
        self.tokenizer_, self.end_ = found, found.number(END)

    def _cut(
        self, texts: Texts | Spans, weight: Tensor | None
    ) -> tuple[Columns, NDArray[np.int64]]:
        """Blocks of texts, by a tokenizer learned from them unless there is one, and their texts."""
        if not self._goes_on and isinstance(texts, Texts):
            self._set_tokenizer(
                tokenizer_of(self.tokenizer, texts, weight, [END], vocab_size=self.vocab_size)
            )
        context = self.energy_.length if self._goes_on else self.context
        found = self._blocks(texts, context, self.stride)
        return Columns({"y": found.tokens, "first": found.first}), found.text.cpu().numpy()

    def _blocks(self, texts: Texts | Spans, context: int, stride: int | None = None) -> Blocks:
        tokens = texts if isinstance(texts, Spans) else self.tokenizer_.encode(texts)
        return blocks_of(tokens, context, self.end_, stride)

    @property
    def _goes_on(self) -> bool:
        return (self.warm_start or self._partial) and hasattr(self, "energy_")

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        return (X, None, {}) if isinstance(X, Columns) else super()._checked(X, y)

    def _sizes(self, X: Any, y: Any) -> dict[str, Any]:
        return {
            "vocab": self.tokenizer_.size, "context": self.context, "dim": self.dim,
            "layers": self.layers, "heads": self.heads, "dropout": self.dropout,
            "positions": self.positions, "hidden": 2 * self.dim,
        }  # fmt: skip

    def _made(self, X: Any, y: Any) -> nn.Module:
        given = self.network
        self.network = NETWORKS.get(given, given) if isinstance(given, str) else given
        try:
            return super()._made(X, y)
        finally:
            self.network = given

    def _energy_of(self, net: nn.Module, X: Any, y: Any) -> Energy:
        k = self.tokenizer_.size
        return SequenceEnergy(net, k, self.context, bos=self.end_, ignore=NOTHING)

    def _build(self, X: Any, y: Any, weight: Tensor | None) -> Plan:
        data: Any = (X if isinstance(X, Columns) else self._cut(X, weight)[0]).parts()
        if self._goes_on:
            energy: Any = self.energy_
        else:
            energy = self._energy_of(self._made(X, y), X, y)
            self._moments, self._epochs = None, 0
        energy.eval()
        lengths = lengths_of(data["y"]).double()
        w = torch.ones_like(lengths) if weight is None else weight.double()
        total = float(current().sum(w.sum()))
        rule = NextToken(current().weighted_mean(lengths, w) if total else 1.0)
        decoupled = self.optimizer == "adamw" or callable(self.optimizer)
        penalty = None if decoupled or not self.weight_decay else L2(self.weight_decay * total)
        return Plan(energy, rule, self._training(rule, total), penalty, data)

    # --- answers -------------------------------------------------------------------------

    def _texts(self, X: Any) -> Texts | Spans:
        check_is_fitted(self, "energy_")
        numbers = tokens_in(X)
        if numbers is not None:
            return texts_of_tokens(numbers, self.end_, self.tokenizer_.size)
        try:
            found: Any = rows_of(X, "text").rows
        except DataError as error:
            raise DataError(f"{type(self).__name__} takes text rows: {error}") from None
        return found

    @torch.no_grad()
    def _summed(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Energies of texts and how many tokens they have, ends included."""
        texts = self._texts(X)
        blocks = self._blocks(texts, self.energy_.length)
        rows = Columns({"y": blocks.tokens, "first": blocks.first})
        with answering(self.energy_, blocks.first):
            each = [
                self.energy_(**part.parts()).double().cpu()
                for part in pieces(rows, self.energy_.placement()[0], 64)
            ]
        summed = torch.zeros(count(texts), dtype=torch.float64)
        summed.index_add_(0, blocks.text, torch.cat(each))
        tokens = torch.zeros(count(texts), dtype=torch.int64)
        tokens.index_add_(0, blocks.text, blocks.lengths)
        return summed.numpy(), tokens.numpy()

    def energy(self, X: Any, y: Any = None, z: Any = None) -> NDArray[np.float64]:
        r""":math:`-\log p(x)` of each text with its end, ``(n_samples,)``, in nats."""
        return self._summed(X)[0]

    def log_prob(self, X: Any) -> NDArray[np.float64]:
        """Log-probability of each text with its end, ``(n_samples,)``.

        A text longer than ``context`` is read in blocks, as in training.
        """
        return -self._summed(X)[0]

    def perplexity(self, X: Any, sample_weight: Any = None) -> float:
        r""":math:`\exp` of the mean of :math:`-\log p` over all tokens."""
        return float(np.exp(-self.score(X, sample_weight=sample_weight)))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-probability of a token in nats, ends included; high is good."""
        e, tokens = self._summed(X)
        w = np.ones(len(e)) if sample_weight is None else np.asarray(sample_weight, float)
        return float(-(w @ e) / (w @ tokens))

    # --- checkpoints ---------------------------------------------------------------------

    @classmethod
    def from_pretrained(cls, folder: str | Path, **settings: Any) -> Self:
        """A fitted model from a folder with a GPT-2 checkpoint and its tokenizer.

        Nothing is downloaded. ``fit`` with ``warm_start=True`` goes on from its weights.

        Parameters
        ----------
        folder : with config.json, model.safetensors and tokenizer.json (or vocab.json, merges.txt)
        settings : other parameters of the constructor
        """
        net, tokenizer = load_gpt2(folder), Tokenizer.load(folder)
        if tokenizer.size != net.vocab:
            raise DataError(
                f"the tokenizer of {folder} has {tokenizer.size} tokens, its network {net.vocab}"
            )
        sizes = {"context": net.context, "dim": net.dim, "layers": net.layers, "heads": net.heads}
        model = cls(**{"warm_start": True, **sizes, **settings})
        model.tokenizer_, model.end_ = tokenizer, tokenizer.number(END)
        model.energy_ = SequenceEnergy(
            net, net.vocab, net.context, bos=model.end_, ignore=NOTHING
        ).eval()
        model.history_, model.n_iter_ = History(converged=True, stop="loaded"), 1
        model._moments, model._epochs = None, 0
        return model
