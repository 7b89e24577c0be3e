"""Pictures in the channels and the size that a model takes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.compute.rows import Files, Pixels, Rows, recoloured, resized
from groundstate.data.images.decode import Header, ImageReader, headers
from groundstate.data.images.folder import common_size
from groundstate.errors import DataError, ShapeError

_NAMES = {1: "grey", 2: "grey with transparency", 3: "coloured", 4: "coloured with transparency"}


@dataclass(frozen=True)
class Form:
    """Channels, and height and width, of pictures."""

    channels: int
    size: tuple[int, int]

    @classmethod
    def of(cls, rows: Any) -> Form:
        """The form that pictures to learn from have, those of other processes among them; of files of
        different sizes the median, of grey and coloured ones colour."""
        if isinstance(rows, Tensor):
            channels, (height, width) = rows.shape[1], rows.shape[2:]
        elif isinstance(rows, Pixels):
            channels, height, width = rows.picture
        elif isinstance(rows, Files) and isinstance(rows.reader, ImageReader):
            reader = rows.reader
            size = reader.size or common_size(_of_all(headers(rows.paths.tolist())))
            forms = current().gather_plain([reader.channels, *size])
            return cls(max(form[0] for form in forms), tuple(forms[0][1:]))
        else:
            raise DataError(f"expected pictures, got {type(rows).__name__}")
        if channels > 4 and width in (1, 3, 4):
            raise ShapeError(
                f"pictures of shape {(channels, height, width)}: channels come first, so pass "
                "X.transpose(0, 3, 1, 2)"
            )
        return cls(channels, (height, width))

    def sized(self, image_size: Any) -> Form:
        """With a side or (height, width) in the place of the own size; None keeps it."""
        if image_size is None:
            return self
        if isinstance(image_size, int):
            return replace(self, size=(image_size, image_size))
        height, width = image_size
        return replace(self, size=(int(height), int(width)))

    def take(self, rows: Any, resize: bool) -> Rows:
        """Pictures in this form; what changes their colours is logged, another size of arrays is an
        error unless ``resize``.
        """
        reader = rows.reader if isinstance(rows, Files) else None
        own = reader.channels if isinstance(reader, ImageReader) else Form.of(rows).channels
        if own != self.channels:
            if {own, self.channels} - set(_NAMES):
                raise ShapeError(
                    f"the model takes {self.channels} channels, the pictures have {own}; pass those it "
                    "was fitted to, or fit it to these"
                )
            warnings.warn(
                f"the pictures are {_NAMES[own]}; they are converted to the {self.channels} "
                f"channels that the model takes",
                UserWarning,
                stacklevel=2,
            )
        if isinstance(rows, Files):
            return Files(rows.paths, ImageReader(self.channels, self.size), rows.content)
        if not resize and Form.of(rows).size != self.size:
            raise ShapeError(
                f"the model was fitted to pictures of {_text(self.size)}, got "
                f"{_text(Form.of(rows).size)}; resize them, or fit with "
                f"image_size={self.size}, which resizes all"
            )
        if isinstance(rows, Pixels):
            return replace(rows, channels=self.channels, size=self.size)
        return resized(recoloured(rows, self.channels), self.size)


def _of_all(found: list[Header]) -> list[Header]:
    """What the files of all processes say."""
    reduce = current()
    if reduce.world == 1:
        return found
    parts = reduce.gather_plain([[*h.size, h.grey, h.alpha] for h in found])
    return [Header((h, w), grey, alpha) for part in parts for h, w, grey, alpha in part]


def _text(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]} pixels"
