"""What the networks for images share: their settings, and a check of what they are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from groundstate.errors import ShapeError

#: Shortest side that survives five halvings with something left to see.
SMALLEST = 32


class ImageNetwork(nn.Module):
    """A network of images ``(N, in_channels, *spatial)`` that knows how it was made.

    ``align`` is the number of pixels by which an image may move so that all maps move with it: the
    product of its strides.
    """

    in_channels: int
    n_dim: int = 2
    align: int = SMALLEST

    def _keep(self, given: Mapping[str, Any]) -> None:
        """Remember the constructor's ``locals()``: ``config`` gives them back."""
        settings = {k: v for k, v in given.items() if k not in ("self", "__class__")}
        vars(self)["_settings"] = settings
        self.in_channels = settings["in_channels"]

    def config(self) -> dict[str, Any]:
        settings: dict[str, Any] = vars(self)["_settings"]
        return {k: _plain(v) for k, v in settings.items()}

    def head_changed(self, outputs: int) -> None:
        """A new head with another number of outputs is part of how the network was made."""
        vars(self)["_settings"]["num_classes"] = outputs

    def checked(self, x: Tensor) -> Tensor:
        """x itself; other ranks and channels are an error that states both shapes."""
        if x.ndim != self.n_dim + 2 or x.shape[1] != self.in_channels:
            space = "height, width" if self.n_dim == 2 else f"{self.n_dim} spatial axes"
            raise ShapeError(
                f"{type(self).__name__} takes (N, {self.in_channels}, {space}), got an input of "
                f"shape {tuple(x.shape)}"
            )
        return x


def _plain(value: Any) -> Any:
    return [_plain(v) for v in value] if isinstance(value, tuple) else value
