r"""Texts with gaps: tokens are hidden, and learned from what is left."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from groundstate.compute.rows import Gaps, Ragged, Tokens, sum_items
from groundstate.compute.rows.ragged import offsets_of
from groundstate.compute.weight_line.hashing_torch import mix64_torch
from groundstate.energy.base import Energy
from groundstate.energy.basic.labels import ClassEnergy
from groundstate.learn.base import Batch, Rule, Terms
from groundstate.nn.text.heads import FillsGaps


class MaskedTokens(Rule):
    r""":math:`L = \frac1m\sum_g -\log p(x_g\mid \tilde x)`. Lowers the energy of the tokens at gaps g
    that are drawn anew in every step, and as every factor is a softmax raises that of all others.

    .. math:: L = \frac1m\sum_g -\log p(x_g\mid \tilde x)

    Of the drawn places 80 % show the mask, 10 % another token, 10 % their own. With ``nsp`` half of
    the rows get the second segment of another row, and :math:`-\log p` of which was done is added.
    Without a generator, as for held-out rows, the places follow from the content of a row, and
    no segments are exchanged.

    Parameters
    ----------
    mask : number of the mask
    special : numbers of tokens that are never hidden; other tokens come after them
    vocab : number of tokens
    rate : probability that a token is a gap
    gaps : m, the mean number of gaps of a row; the mean over rows is then that over gaps
    nsp : whether segments are exchanged
    separator : number of the token that ends a segment
    """

    def __init__(
        self,
        mask: int,
        special: tuple[int, ...],
        vocab: int,
        rate: float = 0.15,
        gaps: float = 1.0,
        nsp: bool = False,
        separator: int | None = None,
    ) -> None:
        super().__init__()
        self.mask, self.special, self.vocab, self.rate = mask, special, vocab, rate
        self.gaps, self.nsp, self.separator = gaps, nsp, separator

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        assert isinstance(energy.net, FillsGaps)
        rows: Tokens = batch["x"]  # type: ignore[assignment]
        exchanged = None
        if self.nsp and generator is not None:
            rows, exchanged = self.exchange(rows, generator)
        x, y = self.hide(rows, generator)
        scores, hidden = energy.net.both(x)
        each = F.cross_entropy(scores.values, y.values, reduction="none")
        loss = sum_items(each.float(), y.offsets) / self.gaps
        if exchanged is not None:
            loss = loss + F.cross_entropy(
                energy.net.net.follows(hidden), exchanged.long(), reduction="none"
            )
        return Terms(loss, lambda: (loss, torch.zeros_like(loss)), exact=False)

    def hide(self, rows: Tokens, generator: torch.Generator | None) -> tuple[Gaps, Ragged]:
        """Rows with gaps, and what stood there."""
        values, offsets = rows.tokens.values, rows.tokens.offsets
        special = torch.tensor(self.special, device=values.device)
        u = [_uniform(rows, generator, i) for i in range(3)]
        chosen = u[0] < self.rate
        chosen &= ~torch.isin(values, special)
        low = max(self.special, default=-1) + 1
        other = (u[2] * (self.vocab - low)).long() + low
        shown = torch.where(u[1] < 0.8, self.mask, torch.where(u[1] < 0.9, other, values))
        seen = torch.where(chosen, shown, values)
        gap_offsets = offsets_of(chosen.long())[offsets]
        places = chosen.nonzero().squeeze(1)
        inside = places - offsets[:-1][rows.tokens.row[places]]
        gaps = Gaps(rows.tokens._of(seen, offsets), rows.content, Ragged._of(inside, gap_offsets))
        return gaps, Ragged._of(values[places], gap_offsets)

    def exchange(self, rows: Tokens, generator: torch.Generator) -> tuple[Tokens, Tensor]:
        """Half of the rows with the second segment of another row, and which these are."""
        n, values, offsets = len(rows), rows.tokens.values, rows.tokens.offsets
        ends = torch.eq(values, -1 if self.separator is None else self.separator).long()
        before = offsets_of(ends)[:-1]
        before = before - before[offsets[:-1].clamp(max=len(values) - 1)][rows.tokens.row]
        first = offsets_of((before == 0).long())[offsets].diff()  # tokens of the first segment
        u = torch.rand(n, 2, generator=generator, device=generator.device).to(values.device)
        swapped = (u[:, 0] < 0.5) & (n > 1)
        step = 1 + (u[:, 1] * (n - 1)).long()
        own = torch.arange(n, device=values.device)
        partner = torch.where(swapped, (own + step) % max(n, 1), own)
        start = torch.stack([offsets[:-1], (offsets[:-1] + first)[partner]], 1).flatten()
        length = torch.stack([first, (rows.tokens.lengths - first)[partner]], 1).flatten()
        begin = offsets_of(length)
        place = torch.arange(int(begin[-1]), device=values.device)
        place = place + (start - begin[:-1]).repeat_interleave(length)
        made = rows.tokens._of(values[place], begin[::2].contiguous())
        return Tokens(made, rows.content), swapped

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        if not isinstance(energy, ClassEnergy) or not isinstance(energy.net, FillsGaps):
            return "its network does not fill gaps of texts"
        return None

    def is_exact(self, energy: Energy, batch: Batch) -> bool:
        return False  # every step draws anew

    def contrast_is_constant(self, energy: Energy) -> bool:
        return True


def _uniform(rows: Tokens, generator: torch.Generator | None, stream: int) -> Tensor:
    """A number in [0, 1) for each token: drawn, or from the content of its row."""
    tokens = rows.tokens
    if generator is not None:
        drawn = torch.rand(len(tokens.values), generator=generator, device=generator.device)
        return drawn.to(tokens.device)
    row = tokens.row
    place = torch.arange(len(row), device=tokens.device) - tokens.offsets[row]
    words = mix64_torch(mix64_torch(rows.content[row] + stream) + place)
    return ((words >> 11) & (2**53 - 1)).double() * 2.0**-53
