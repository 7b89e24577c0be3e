r"""Several transforms one after the other; pictures, masks and boxes together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from groundstate.errors import Unsupported
from groundstate.nn.augment.affine import Affine, move_boxes, move_images, move_masks
from groundstate.nn.augment.base import Each, Rng, Transform, column, uniform
from groundstate.nn.augment.mix import CutMix, Mixup


@dataclass(frozen=True)
class Views:
    """Augmented pictures with what is on them.

    Attributes
    ----------
    images : (B, C, H, W)
    masks : (B, H, W), or a list of (k_i, H, W), as given; None where none were
    boxes : list of (k_i, 4) xyxy; None where none were given
    visible : list of (k_i,), the share of each moved box that is inside of the picture
    """

    images: Tensor
    masks: Tensor | list[Tensor] | None = None
    boxes: list[Tensor] | None = None
    visible: list[Tensor] | None = None


class Augment(nn.Module):
    r"""Several transforms one after the other, each example by its own draws.

    Parameters
    ----------
    transforms : ``Transform`` s, or functions of one example (also of torchvision), in order
    mixup : :math:`\alpha` of ``Mixup``; 0 is none
    cutmix : :math:`\alpha` of ``CutMix``; 0 is none, and with both each example draws one of them
    generator : source of the draws; None is torch's own stream, set by the trainer

    Attributes
    ----------
    label_preserving : bool
    mixes : bool, whether examples are mixed

    Examples
    --------
    >>> from groundstate.nn.augment import Flip, Shift
    >>> augment = Augment([Flip(), Shift(1)], generator=torch.Generator().manual_seed(0))
    >>> x = torch.arange(32.0).view(2, 1, 4, 4)
    >>> augment(x).shape, torch.equal(augment.eval()(x), x)
    (torch.Size([2, 1, 4, 4]), True)
    """

    def __init__(
        self,
        transforms: Sequence[Transform | Callable[[Tensor], Tensor]],
        mixup: float = 0.0,
        generator: torch.Generator | None = None,
        *,
        cutmix: float = 0.0,
    ) -> None:
        super().__init__()
        self.transforms = nn.ModuleList(
            [t if isinstance(t, Transform) else Each(t) for t in transforms]
        )
        self.mixup, self.cutmix = Mixup(mixup), CutMix(cutmix)
        self.generator = generator

    @property
    def mixes(self) -> bool:
        return self.mixup.alpha > 0 or self.cutmix.alpha > 0

    @property
    def label_preserving(self) -> bool:
        return all(bool(t.label_preserving) for t in self.transforms) and not self.mixes

    def forward(self, x: Tensor, generator: Rng = None) -> Tensor:
        for transform in self.transforms:
            x = transform(x, generator or self.generator)
        return x

    def mix(self, x: Tensor, generator: Rng = None) -> tuple[Tensor, Tensor, Tensor]:
        """Mixed examples, the partners ``(B,)`` and the shares ``(B,)`` of the first."""
        rng = generator or self.generator
        if not self.cutmix.alpha:
            found: tuple[Tensor, Tensor, Tensor] = self.mixup(x, rng)
            return found
        cut: tuple[Tensor, Tensor, Tensor] = self.cutmix(x, rng)
        if not self.mixup.alpha or not self.training:
            return cut
        mixed, partner, share = self.mixup(x, rng)
        first = uniform(x, rng) < 0.5
        return (
            torch.where(column(first, x), mixed, cut[0]),
            torch.where(first, partner, cut[1]),
            torch.where(first, share, cut[2]),
        )

    def together(
        self,
        x: Tensor,
        *,
        masks: Tensor | Sequence[Tensor] | None = None,
        boxes: Sequence[Tensor] | None = None,
        outside: int = 0,
        generator: Rng = None,
    ) -> Views:
        """Pictures with the masks and boxes that move with them.

        Moves must be ``Affine``; changes of colour leave masks and boxes alone. Examples are not
        mixed.

        Parameters
        ----------
        x : (B, C, H, W)
        masks : labels of pixels (B, H, W), or for every picture masks (k_i, H, W)
        boxes : for every picture boxes (k_i, 4), xyxy in pixels
        outside : label of pixels that come in from outside
        """
        rng = generator or self.generator
        kept = None if masks is None else masks if isinstance(masks, Tensor) else list(masks)
        moved = None if boxes is None else list(boxes)
        visible = None if moved is None else [b.new_ones(len(b)) for b in moved]
        for transform in self.transforms:
            if not isinstance(transform, Affine):
                if bool(transform.moves) and (masks is not None or boxes is not None):
                    raise Unsupported(
                        f"{type(transform).__name__} moves pixels but not masks and boxes; use "
                        "Affine, which moves all of them"
                    )
                x = transform(x, rng)
                continue
            if not transform.training or transform.p == 0:
                continue
            M = transform.draw(len(x), x.shape[2:], rng, x.device)
            x = move_images(x, M, transform.mode, transform.fill)
            if isinstance(kept, Tensor):
                kept = move_masks(kept, M, outside)
            elif kept is not None:
                kept = _moved_masks(kept, M)
            if moved is not None and visible is not None:
                moved, seen = _moved(moved, M, x.shape[2:])
                visible = [a * b for a, b in zip(visible, seen, strict=True)]
        return Views(x, kept, moved, visible)


def _moved(
    boxes: Sequence[Tensor], M: Tensor, size: Sequence[int]
) -> tuple[list[Tensor], list[Tensor]]:
    """Boxes of all pictures at once."""
    counts = [len(b) for b in boxes]
    found, visible = move_boxes(torch.cat(list(boxes)), M[_whose(counts, M)], size)
    return list(found.split(counts)), list(visible.split(counts))


def _moved_masks(masks: Sequence[Tensor], M: Tensor) -> list[Tensor]:
    """Masks of all pictures at once."""
    counts = [len(m) for m in masks]
    if not sum(counts):
        return list(masks)
    found = move_masks(torch.cat(list(masks)), M[_whose(counts, M)])
    return list(found.split(counts))


def _whose(counts: list[int], M: Tensor) -> Tensor:
    """The picture of each of its boxes or masks."""
    return torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts)).to(M.device)
