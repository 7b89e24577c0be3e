r"""Encoders of tokens that look both ways, and the network that fills gaps."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from groundstate.errors import ShapeError
from groundstate.nn.architectures import architecture, tokens
from groundstate.nn.attention.embed import embedding, normal
from groundstate.nn.attention.positions import LearnedPositions
from groundstate.nn.attention.transformer import TransformerEncoder
from groundstate.nn.blocks.initialise import linear

STD, WIDE = 0.02, 768  # of initial weights, in a network so wide


class BERT(nn.Module):
    r"""An encoder of tokens: every position sees all others.

    .. math:: h = f_L\circ\dots\circ f_1\bigl(\mathrm{LN}(E[x] + P + S[\text{segment}])\bigr),
              \qquad \text{pooled} = \tanh(W h_1 + b)

    Post-norm blocks with GELU, learned positions, two segments. ``load_bert`` reads checkpoints.

    Parameters
    ----------
    vocab : number of tokens
    context : positions at most
    dim, heads, layers, ff : sizes
    pooler : whether there is the map of the first position to ``pooled``
    separator : the token behind which segment 1 begins where no segments are given; None: all 0
    activation, dropout : see ``TransformerBlock``
    eps : of the norms
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> net = BERT(11, 16, 8, 2, 2)
    >>> net(torch.ones(2, 5, dtype=torch.int64)).shape
    torch.Size([2, 5, 8])
    """

    def __init__(
        self,
        vocab: int = 30_522,
        context: int = 512,
        dim: int = 768,
        heads: int = 12,
        layers: int = 12,
        ff: int | None = None,
        *,
        pooler: bool = True,
        separator: int | None = None,
        activation: str = "gelu",
        dropout: float = 0.1,
        eps: float = 1e-12,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        generator = generator or torch.Generator().manual_seed(0)
        self.vocab, self.context, self.dim, self.heads = vocab, context, dim, heads
        self.layers, self.ff, self.separator, self.pooler = layers, ff, separator, pooler
        self.activation, self.dropout, self.eps = activation, dropout, eps
        std = initial_std(dim)
        self.embed = embedding(vocab, dim, generator, std=std)
        self.place = LearnedPositions(context, dim, generator=generator)
        self.segment = embedding(2, dim, generator, std=std)
        self.norm = nn.LayerNorm(dim, eps)
        self.stack = TransformerEncoder(
            dim, heads, layers, ff, activation, final_norm=False, dropout=dropout, eps=eps,
            generator=generator,
        )  # fmt: skip
        self.pool = linear(dim, dim) if pooler else None
        for part in (self.stack, self.pool):
            small_(part, generator, dim)

    def forward(
        self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None
    ) -> Tensor:
        """The vectors of all positions, ``(B, T, dim)``.

        Parameters
        ----------
        tokens : int64 ``(B, T)``
        mask : bool ``(B, T)``, True where a token is real; None: all are
        segments : int64 ``(B, T)`` of 0 and 1; None: by ``separator``
        """
        if tokens.ndim != 2 or tokens.shape[1] > self.context:
            raise ShapeError(
                f"BERT takes tokens (batch, length) of at most {self.context}, got "
                f"{tuple(tokens.shape)}; cut longer texts, or use a larger context"
            )
        if segments is None:
            segments = torch.zeros_like(tokens)
            if self.separator is not None:
                ends = (tokens == self.separator).long()
                segments = (ends.cumsum(1) - ends).clamp(max=1)
        x = self.norm(self.place(self.embed(tokens)) + self.segment(segments))
        x = F.dropout(x, self.dropout, self.training)
        return self.stack(x, None if mask is None else mask[:, None, None])

    def pooled(self, hidden: Tensor) -> Tensor:
        """The vector of a whole text, ``(B, dim)``, from its first position."""
        assert self.pool is not None
        return torch.tanh(self.pool(hidden[:, 0]))


@architecture(
    "bert",
    kind="text",
    inputs=tokens(11, 5),
    small={"vocab": 11, "context": 8, "dim": 8, "heads": 2, "layers": 2},
)
class MaskedBERT(nn.Module):
    r"""Scores of the tokens at all positions, :math:`f_t = E\,\mathrm{LN}(\mathrm{gelu}(Wh_t)) + b`,
    with the vectors h and the embedding E of ``BERT``; and whether the second segment follows the
    first.

    Parameters
    ----------
    vocab, context, dim, heads, layers, ff, separator, activation, dropout, eps : see ``BERT``
    nsp : whether there is the second answer, ``follows``
    pooler : whether the encoder keeps its map to ``pooled`` without it
    generator : source of the initial weights; None is a fixed seed

    Examples
    --------
    >>> net = MaskedBERT(11, 16, 8, 2, 2)
    >>> net(torch.ones(2, 5, dtype=torch.int64)).shape
    torch.Size([2, 5, 11])
    """

    def __init__(
        self,
        vocab: int = 30_522,
        context: int = 512,
        dim: int = 768,
        heads: int = 12,
        layers: int = 12,
        ff: int | None = None,
        *,
        nsp: bool = False,
        pooler: bool = False,
        separator: int | None = None,
        activation: str = "gelu",
        dropout: float = 0.1,
        eps: float = 1e-12,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        generator = generator or torch.Generator().manual_seed(0)
        self.vocab, self.context, self.dim, self.heads = vocab, context, dim, heads
        self.layers, self.ff, self.separator = layers, ff, separator
        self.nsp, self.pooler = nsp, pooler
        self.activation, self.dropout, self.eps = activation, dropout, eps
        self.bert = BERT(
            vocab, context, dim, heads, layers, ff, pooler=nsp or pooler, separator=separator,
            activation=activation, dropout=dropout, eps=eps, generator=generator,
        )  # fmt: skip
        self.transform = linear(dim, dim)
        self.norm = nn.LayerNorm(dim, eps)
        self.bias = nn.Parameter(torch.zeros(vocab))
        self.follow = linear(dim, 2) if nsp else None
        for part in (self.transform, self.follow):
            small_(part, generator, dim)

    def forward(
        self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None
    ) -> Tensor:
        """Scores ``(B, T, vocab)``; arguments as of ``BERT``."""
        return self.scores(self.bert(tokens, mask, segments))

    def scores(self, hidden: Tensor) -> Tensor:
        """Scores ``(..., vocab)`` of the tokens at positions with these vectors."""
        h = self.norm(F.gelu(self.transform(hidden)))
        return F.linear(h, self.bert.embed.weight, self.bias)

    def follows(self, hidden: Tensor) -> Tensor:
        """Scores ``(B, 2)`` that the second segment follows the first (0) or does not (1)."""
        assert self.follow is not None
        found: Tensor = self.follow(self.bert.pooled(hidden))
        return found


def initial_std(dim: int) -> float:
    r""":math:`.02\sqrt{768/d}`: that of BERT at its own width, and signals of the same size at others,
    since a layer multiplies them by :math:`\sigma\sqrt d`.

    >>> initial_std(768), round(initial_std(48), 6)
    (0.02, 0.08)
    """
    return STD * math.sqrt(WIDE / dim)


@torch.no_grad()
def small_(module: nn.Module | None, generator: torch.Generator, dim: int) -> None:
    """Weights of a network of width ``dim`` as ``initial_std`` says, biases 0."""
    for layer in () if module is None else module.modules():
        if isinstance(layer, nn.Linear) and not layer.weight.is_meta:
            layer.weight.copy_(normal(layer.weight.shape, initial_std(dim), generator))
            layer.bias.zero_()
