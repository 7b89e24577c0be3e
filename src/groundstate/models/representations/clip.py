"""Pictures and texts in one space of codes."""

from __future__ import annotations

from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.rows import Ragged, Texts, Tokens, count, floating
from groundstate.compute.thread_policy import answering
from groundstate.data.images.sets import channel_moments
from groundstate.data.rows import rows_of
from groundstate.data.text.pieces import framed, shortened
from groundstate.data.text.tokenizer import KINDS, Tokenizer
from groundstate.energy.base import Energy
from groundstate.energy.networks.similarity import SimilarityEnergy
from groundstate.energy.spaces import Real, Space, TokenSequence
from groundstate.errors import DataError, ShapeError
from groundstate.learn.base import Rule
from groundstate.learn.rules.views import PairedViews
from groundstate.learn.rules.views.paired import LOSSES
from groundstate.models import settings
from groundstate.models.arrays import Home
from groundstate.models.base import Plan
from groundstate.models.networks.seeds import init_key
from groundstate.models.representations.zero_shot import ZeroShot
from groundstate.models.rows.making import make_network
from groundstate.models.rows.network import RowNetwork, pieces
from groundstate.models.text.masked_language_model import FIRST, LAST, SPECIAL
from groundstate.models.text.vocabulary import tokenizer_of
from groundstate.models.traits import Traits
from groundstate.models.vision.forms import Form
from groundstate.nn.blocks.channels import standardized
from groundstate.nn.text.heads import CodesTexts, reads
from groundstate.registry import models

START = {"softmax": (1 / 0.07, None), "sigmoid": (10.0, -10.0)}  # scale and bias of each loss


@models.register(family="representations", task="representation", role="transformer", auto=False)
class CLIP(ZeroShot, RowNetwork):
    r"""Pictures and texts in one space of codes: a picture is near the text that describes it.

    .. math::
        e(x, y) = -e^s\cos(f(x), g(y)), \qquad
        \min_{f, g, s}\ \frac1{2N}\sum_i\Big[-\log\frac{e^{-e(x_i, y_i)}}{\sum_je^{-e(x_i, y_j)}}
        - \log\frac{e^{-e(x_i, y_i)}}{\sum_je^{-e(x_j, y_i)}}\Big] .

    A row is a pair: ``fit(X, y)`` takes pictures X and a text y of each. In a batch of N pairs every picture
    finds its text and every text its picture. Classes need no examples then, only a name: a picture belongs
    to the class whose prompt is nearest (zero-shot), and classes are added without learning.

    Parameters
    ----------
    image_encoder : str, module, class or function, default="cnn"
        f: an architecture of ``groundstate.architectures.list(kind="image")``, or a module from
        ``(B, C, H, W)`` to ``(B, n_components)``.
    text_encoder : str, module, class or function, default="bert"
        g: "bert", "gpt", "gru_lm", "lstm_lm", a module of their kind, or one from ``Tokens`` to
        ``(B, n_components)``.
    n_components : int, default=64
        Numbers of a code.
    loss : {"softmax", "sigmoid"}, default="softmax"
        "sigmoid" judges each of the N² pairs of a batch alone.
    template : str, default="a photo of a {c}"
        Text of a class, with its name in the place of ``{c}``.
    image_params, text_params : dict, default=None
        Further arguments of the constructors of the encoders.
    context : int, default=77
        Tokens of a text that are read.
    tokenizer : str or Tokenizer, default="word"
        "word", "char", "byte", "bpe", "wordpiece" or "unigram", learned from the texts; or one that is
        there, with BERT's special tokens.
    vocab_size, lowercase : int or None; bool
        Of a learned tokenizer.
    batch_size : int, default=128
        Pairs of a step, each of which is held against all others.

    Attributes
    ----------
    classes_ : (n_classes,) array
        Names of the classes that were added.
    scale_ : float
        :math:`e^s`, one over the learned temperature, at most 100.
    tokenizer_ : Tokenizer
    form_ : Form
        Channels and size of the pictures.
    energy_ : SimilarityEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import CLIP
    >>> from groundstate.data import make_captions
    >>> X, captions, factors = make_captions(120, random_state=0)
    >>> model = CLIP(n_components=8, text_params={"dim": 16, "layers": 1, "heads": 2}, template="a {c} circle",
    ...              max_epochs=8, lr=5e-3, batch_size=40, random_state=0).fit(X, captions)
    >>> colours = np.array(["red", "green", "blue"])
    >>> bool((model.predict(X, colours) == colours[factors[:, 0]]).mean() > 0.8)
    True
    >>> model.similarity(X[:2], ["a red circle", "a blue square"]).shape
    (2, 2)
    """

    rows: ClassVar[str] = "image"
    _takes_target: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "image_encoder": [str, nn.Module, callable],
        "text_encoder": [str, nn.Module, callable],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "loss": [StrOptions(set(LOSSES))],
        "template": [str],
        "image_params": [dict, None],
        "text_params": [dict, None],
        "context": [Interval(Integral, 3, None, closed="left")],
        "tokenizer": [StrOptions(set(KINDS)), Path, Tokenizer],
        "vocab_size": [Interval(Integral, 1, None, closed="left"), None],
        "lowercase": ["boolean"],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
    }
    traits = Traits(
        program=None,
        space={
            "lr": settings.Real(1e-4, 1e-2, log=True),
            "n_components": settings.Whole(16, 256, log=True),
        },
    )
    _store_private: ClassVar[tuple[str, ...]] = ("_moments", "_epochs", "_prompts")
    network: Any = None
    network_params: dict[str, Any] | None = None

    image_encoder: Any
    text_encoder: Any
    n_components: int
    loss: str
    template: str
    image_params: dict[str, Any] | None
    text_params: dict[str, Any] | None
    context: int
    tokenizer: Any
    vocab_size: int | None
    lowercase: bool
    energy_: SimilarityEnergy
    tokenizer_: Tokenizer
    form_: Form
    mean_: NDArray[np.float64]
    std_: NDArray[np.float64]
    _prompts: dict[str, list[str]]

    def __init__(
        self,
        image_encoder: Any = "cnn",
        text_encoder: Any = "bert",
        *,
        n_components: int = 64,
        loss: str = "softmax",
        template: str = "a photo of a {c}",
        image_params: dict[str, Any] | None = None,
        text_params: dict[str, Any] | None = None,
        context: int = 77,
        tokenizer: Any = "word",
        vocab_size: int | None = None,
        lowercase: bool = True,
        max_epochs: int = 30,
        batch_size: int = 128,
        optimizer: Any = "adamw",
        lr: float = 1e-3,
        weight_decay: float = 1e-2,
        val_fraction: float = 0.0,
        patience: int | None = None,
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

    # --- pictures and texts --------------------------------------------------------------

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        rows, texts, encoded = super()._checked(X, y)
        if count(rows) < 2:
            raise ValueError(
                f"CLIP contrasts pairs with each other and needs at least 2, got {count(rows)}"
            )
        return floating(rows, torch.float32), texts, encoded

    def _row_target(self, y: Any, rows: Any) -> tuple[Texts, dict[str, Any]]:
        texts = self._texts(y, "y")
        if len(texts) != count(rows):
            raise ShapeError(f"X has {count(rows)} rows, y has {len(texts)}; give one for each")
        return texts, {}

    def _example_target(self, X: Any) -> Any:
        return np.array([f"picture {i % 7} of {i % 5}" for i in range(count(X))], dtype=object)

    def _texts(self, y: Any, name: str) -> Texts:
        try:
            found: Any = rows_of(y, "text").rows
        except DataError as error:
            raise DataError(f"{name} of CLIP are texts: {error}") from None
        assert isinstance(found, Texts)
        return found

    def _learn_preparation(self, X: Any, y: Any, weight: Tensor | None) -> None:
        self.form_ = Form.of(X)
        mean, std = channel_moments(X, weight)
        self.mean_, self.std_ = mean.cpu().numpy(), std.cpu().numpy()
        self.tokenizer_ = tokenizer_of(
            self.tokenizer, y, weight, SPECIAL, vocab_size=self.vocab_size, lowercase=self.lowercase
        )
        self._prompts = {}

    def _prepared(self, X: Any) -> Any:
        return self.form_.take(X, False)

    def _tokens(self, texts: Texts) -> Tokens:
        words = self.tokenizer_
        found = words.encode(texts)
        short = shortened(found.tokens, self.context - 2)
        rows: Ragged = framed(short, words.number(FIRST), words.number(LAST))
        return Tokens(rows, found.content).to(texts.device)

    # --- learning ------------------------------------------------------------------------

    def _build(self, X: Any, y: Any, weight: Tensor | None) -> Plan:
        plan = super()._build(X, y, weight)
        assert plan.data is not None
        data: dict[str, Any] = {**plan.data, "y": self._tokens(y)}
        plan.data = data
        return plan

    def _made(self, X: Any, y: Any) -> nn.Module:
        key, form = init_key(self.random_state).fold("image"), self.form_
        given = self.image_params or {}
        if self.image_encoder == "cnn":
            given = {"channels": (32, 64), "head": "flatten", **given}
        height, width = form.size
        sizes = {
            "in_channels": form.channels, "num_classes": self.n_components,
            "image_size": height if height == width else form.size,
        }  # fmt: skip
        net = make_network(self.image_encoder, sizes, given, "image", key)
        return standardized(net, self.mean_, self.std_)

    def _text_net(self) -> nn.Module:
        key = init_key(self.random_state).fold("text")
        sizes = {
            "vocab": self.tokenizer_.size, "context": self.context, "dim": 64, "layers": 2,
            "heads": 4, "dropout": 0.0, "hidden": 128, "separator": self.tokenizer_.number(LAST),
            "num_classes": self.n_components, "out_features": self.n_components,
            "vocabulary": self.tokenizer_.size,
        }  # fmt: skip
        net = make_network(self.text_encoder, sizes, self.text_params or {}, "text", key)
        if not reads(net):
            return net
        return CodesTexts(net, self.n_components, generator=key.fold("head").torch())

    def _energy_of(self, net: nn.Module, X: Any, y: Any) -> Energy:
        other = self._text_net()
        scale, bias = START[self.loss]
        energy = SimilarityEnergy(
            self._space(X), TokenSequence(self.tokenizer_.size), net, other, scale, bias
        )
        energy.eval()
        place = next(net.parameters(), torch.zeros(()))
        x = torch.zeros(2, self.form_.channels, *self.form_.size, dtype=place.dtype)
        with torch.no_grad():
            found = {
                "image_encoder": tuple(net(x).shape),
                "text_encoder": tuple(other(self._tokens(Texts.of(["a", "b"]))).shape),
            }
        for name, shape in found.items():
            if len(shape) != 2 or shape != found["image_encoder"]:
                raise ShapeError(
                    f"both encoders give codes (B, k) of one length k, for two rows {name} gave {shape} "
                    f"and image_encoder {found['image_encoder']}"
                )
        return energy

    def _space(self, X: Any) -> Space:
        return Real(self.form_.channels, *self.form_.size)

    def _loss(self, energy: Energy) -> Rule:
        return PairedViews(self.loss)

    # --- codes ---------------------------------------------------------------------------

    @property
    def scale_(self) -> float:
        return float(self.energy_.scale.detach())

    @property
    def network_(self) -> nn.Module:
        net: Any = self.energy_.net
        return net[1]

    def transform(self, X: Any) -> Any:
        """Codes of pictures, of length one, ``(n_samples, n_components)``."""
        codes, home = self._image_codes(X)
        return home.give(codes)

    def encode_text(self, texts: Any) -> Any:
        """Codes of texts, of length one, ``(n_texts, n_components)``."""
        return Home().give(self._text_codes(texts))

    def _image_codes(self, X: Any) -> tuple[Tensor, Home]:
        x, home = self._rows(X)
        with answering(self.energy_, x):
            return self._in_chunks(self.energy_.embed, x), home

    def _text_codes(self, texts: Any) -> Tensor:
        device = self.energy_.placement()[0]
        tokens = self._tokens(self._texts([texts] if isinstance(texts, str) else texts, "texts"))
        with answering(self.energy_, torch.zeros(1)):
            return torch.cat([self.energy_.embed_y(part) for part in pieces(tokens, device)])

    def energy(self, X: Any, y: Any = None, z: Any = None) -> Any:
        """Energy of each pair of a picture and a text, ``(n_samples,)``."""
        if y is None:
            raise ValueError(
                "CLIP has energies of pairs: energy(X, y) with a text for each picture"
            )
        codes, home = self._image_codes(X)
        texts = self._text_codes(y)
        if len(texts) != len(codes):
            raise ShapeError(f"X has {len(codes)} rows, y has {len(texts)}; give one for each")
        bias = 0.0 if self.energy_.bias is None else self.energy_.bias.detach()
        return home.give(-self.scale_ * (codes * texts).sum(1) - bias)
