r"""Maps and pictures as bytes: :math:`b = \mathrm{round}(255\,(v - v_{\min})/(v_{\max} - v_{\min}))`."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import numpy as np
from pydantic import BaseModel


class Stack(BaseModel):
    """Maps of one size: their number, height, width and channels, and bytes in base64.

    ``low`` and ``high`` are the values of byte 0 and 255; one scale for all maps of a stack, so that
    they compare.
    """

    count: int
    height: int
    width: int
    channels: int = 1
    low: float
    high: float
    pixels: str

    @classmethod
    def of(cls, values: Any, low: float | None = None, high: float | None = None) -> Stack:
        """Maps ``(n, H, W)`` or pictures ``(n, C, H, W)``, clipped to [low, high] where given.

        >>> stack = Stack.of(np.array([[[0.0, 1.0]]]))
        >>> stack.count, stack.height, stack.width, stack.pixels
        (1, 1, 2, 'AP8=')
        """
        v = np.nan_to_num(np.asarray(values, np.float64))
        if v.ndim == 3:
            v = v[:, None]
        if v.shape[1] not in (1, 3):  # other numbers of channels have no colours
            v = v.mean(1, keepdims=True)
        a = float(v.min(initial=0.0 if not v.size else np.inf)) if low is None else low
        b = float(v.max(initial=0.0 if not v.size else -np.inf)) if high is None else high
        span = b - a if b > a else 1.0
        bytes_ = np.rint(np.clip((v - a) / span, 0, 1) * 255).astype(np.uint8)
        n, c, h, w = v.shape
        packed = b64encode(np.ascontiguousarray(bytes_.transpose(0, 2, 3, 1)).tobytes())
        return cls(
            count=n, height=h, width=w, channels=c, low=a, high=b, pixels=packed.decode("ascii")
        )


def plain(values: Any, digits: int = 6) -> list[Any]:
    """Numbers for JSON, nested as the array is: rounded, and None where they are not finite.

    >>> plain(np.array([[1.0, np.nan], [1 / 3, np.inf]]), 3)
    [[1.0, None], [0.333, None]]
    """
    array = np.asarray(values, np.float64)
    if array.ndim > 1:
        return [plain(part, digits) for part in array]
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in array.tolist()]
