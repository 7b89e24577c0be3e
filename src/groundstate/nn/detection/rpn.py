r"""Region proposals: a small network that says at every anchor whether there is an object, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from groundstate.compute.rows import Ragged
from groundstate.nn.detection import boxes as box
from groundstate.nn.detection.anchors import NEGATIVE, AnchorGenerator, AnchorMatcher
from groundstate.nn.detection.parts import Padded, Part, Parts, full, per_row, suppressed
from groundstate.nn.detection.sampling import balanced_sample

BETA = 1 / 9  # where the smooth L1 loss of offsets turns from a parabola into a line


class RPN(nn.Module):
    r"""A 3×3 convolution and ReLU, then two 1×1 convolutions: at each cell k objectness logits and
    4k offsets.

    The objectness of an anchor is a logit o, :math:`p = \sigma(o)`. With ``softmax=True`` there are
    two scores per anchor, :math:`p = \operatorname{softmax}(s_0, s_1)_1`, and
    :math:`o = s_1 - s_0`: the same family of functions with a redundant half.

    Parameters
    ----------
    in_channels : of the feature maps
    k : anchors of a cell
    softmax : whether there are two scores per anchor

    Examples
    --------
    >>> objectness, offsets = RPN(8, 3)(torch.zeros(2, 8, 5, 6))
    >>> tuple(objectness.shape), tuple(offsets.shape)
    ((2, 3, 5, 6), (2, 12, 5, 6))
    """

    def __init__(self, in_channels: int, k: int, softmax: bool = False) -> None:
        super().__init__()
        self.k, self.softmax = k, softmax
        self.conv = nn.Sequential(
            nn.Sequential(nn.Conv2d(in_channels, in_channels, 3, padding=1), nn.ReLU())
        )
        self.cls_logits = nn.Conv2d(in_channels, 2 * k if softmax else k, 1)
        self.bbox_pred = nn.Conv2d(in_channels, 4 * k, 1)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.normal_(layer.weight, std=0.01)
                nn.init.zeros_(layer.bias)  # type: ignore[arg-type]

    def scores(self, x: Tensor) -> Tensor:
        """What the classifying layer gives, ``(N, k or 2k, H, W)``."""
        found: Tensor = self.cls_logits(self.conv(x))
        return found

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits ``(N, k, H, W)`` and offsets ``(N, 4k, H, W)``."""
        h = self.conv(x)
        s = self.cls_logits(h)
        if self.softmax:
            s = s[:, self.k :] - s[:, : self.k]
        return s, self.bbox_pred(h)


@dataclass(frozen=True)
class AtAnchors:
    """What the network says at all anchors of a batch of pictures.

    Attributes
    ----------
    objectness : Tensor, ``(B, A)``
    offsets : Tensor, ``(B, A, 4)``
    anchors : Tensor, ``(A, 4)``
    sizes : anchors of each map
    image : height and width of the pictures
    """

    objectness: Tensor
    offsets: Tensor
    anchors: Tensor
    sizes: list[int]
    image: tuple[int, int]


class RegionProposals(nn.Module):
    r"""Anchors, their objectness and offsets, and the boxes proposed from them.

    The energy of a set of truths at its matched assignment is

    .. math:: e = \sum_a -\log p(c_a) + \sum_{a: c_a = 1} \ell_{1/9}(t_a - t^*_a),

    over the anchors that are positive (c = 1: IoU ≥ ``high`` with a truth, or a truth's best) or
    negative (IoU < ``low``), with the smooth L1 loss :math:`\ell_\beta` of offsets. Proposals are the
    best ``before`` anchors of each map, moved by their offsets, cut at the border of the picture,
    without tiny ones, thinned out by non-maximum suppression and reduced to ``after``.

    Parameters
    ----------
    head : of all feature maps
    anchors : at the cells of the maps
    matcher : which anchors take which truth
    sample, fraction : anchors of a picture in a loss, and how many of them may be positive
    before, after : proposals before and after suppression, in training and otherwise
    nms : overlap above which the lower score goes
    smallest : sides in pixels below which a proposal is dropped
    """

    def __init__(
        self,
        head: RPN,
        anchors: AnchorGenerator,
        matcher: AnchorMatcher | None = None,
        *,
        sample: int = 256,
        fraction: float = 0.5,
        before: tuple[int, int] = (2000, 1000),
        after: tuple[int, int] = (2000, 1000),
        nms: float = 0.7,
        smallest: float = 1e-3,
    ) -> None:
        super().__init__()
        self.head, self.anchors, self.matcher = head, anchors, matcher or AnchorMatcher()
        self.sample, self.fraction = sample, fraction
        self.before, self.after, self.nms, self.smallest = before, after, nms, smallest

    def forward(self, maps: Sequence[Tensor], image: tuple[int, int]) -> AtAnchors:
        """Objectness and offsets at all anchors."""
        outputs = [self.head(m) for m in maps]
        grid = [(int(m.shape[2]), int(m.shape[3])) for m in maps]
        anchors = self.anchors(grid, image, maps[0].device)
        objectness = torch.cat([o.permute(0, 2, 3, 1).flatten(1) for o, _ in outputs], 1)
        offsets = [t.permute(0, 2, 3, 1).flatten(1).unflatten(1, (-1, 4)) for _, t in outputs]
        return AtAnchors(
            objectness,
            torch.cat(offsets, 1),
            torch.cat(anchors).to(full(offsets[0]).dtype),  # a half has no pixels to spare
            [len(a) for a in anchors],
            image,
        )

    @torch.no_grad()
    def proposals(self, found: AtAnchors) -> tuple[Padded, Ragged]:
        """Boxes of each picture, the most likely first, and their probabilities."""
        before, after = (pair[0 if self.training else 1] for pair in (self.before, self.after))
        level: list[int] = []
        kept, start = [], 0
        for i, size in enumerate(found.sizes):
            n = min(before, size)
            kept.append(found.objectness[:, start : start + size].topk(n, 1).indices + start)
            level += [i] * n
            start += size
        place = torch.cat(kept, 1)  # (B, N)
        scores = full(found.objectness.gather(1, place)).sigmoid()
        offsets = full(found.offsets.gather(1, place[..., None].expand(-1, -1, 4)))
        moved = box.clip(box.decode(offsets, full(found.anchors)[place]), found.image)
        good = ((moved[..., 2:] - moved[..., :2]) >= self.smallest).all(-1)
        row, at = good.nonzero(as_tuple=True)
        boxes, chance = moved[row, at], scores[row, at]
        levels = torch.tensor(level, device=place.device)[at]
        stay, begin = suppressed(boxes, chance, row, levels, self.nms, after, len(place))
        return Padded.of(Ragged._of(boxes[stay], begin)), Ragged._of(chance[stay], begin)

    def parts(self, found: AtAnchors, truths: Padded, u: Tensor | None = None) -> Parts:
        """Energies of the truths at their anchors: of all, or of a balanced sample.

        Parameters
        ----------
        found : what the network says
        truths : boxes of each picture
        u : numbers in [0, 1), ``(B, A)``, by which anchors are chosen; None takes all
        """
        anchors = full(found.anchors)
        with torch.no_grad():
            own = self.match(anchors, truths)
            label = torch.where(own >= 0, 1, torch.where(own == NEGATIVE, 0, -1))
            chosen = label >= 0
            if u is not None:
                chosen = balanced_sample(label, self.sample, self.fraction, u=u)
            row, at = chosen.nonzero(as_tuple=True)  # (S,), the rows in order
            c = label[row, at]
            far, where = row[c > 0], at[c > 0]
            goal = box.encode(full(truths.boxes)[far, own[far, where]], anchors[where])
        b = len(own)
        logit = full(found.objectness[row, at])
        fit = functional.binary_cross_entropy_with_logits(
            logit, c.to(logit.dtype), reduction="none"
        )
        moved = functional.smooth_l1_loss(
            full(found.offsets[far, where]), goal.to(logit.dtype), beta=BETA, reduction="none"
        ).sum(1)
        count = chosen.sum(1)
        return {
            "objectness": Part(per_row(fit, row, b), count),
            "rpn_box": Part(per_row(moved, far, b), count),
        }

    def match(self, anchors: Tensor, truths: Padded) -> Tensor:
        """The truth of each anchor, ``(B, A)``."""
        iou = box.iou(full(truths.boxes), anchors)  # (B, G, A)
        return self.matcher(iou.masked_fill(~truths.real[..., None], -1.0))
