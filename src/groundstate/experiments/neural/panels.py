"""What experiments with networks share: the network of a member, and panels that stand still."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from groundstate.energy import Energy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def network_of(energy: Energy) -> nn.Module:
    """The network inside an energy."""
    net = energy.net
    assert isinstance(net, nn.Module)
    return net


def settle(figure: Figure, digits: int = 4) -> None:
    """Lay the panels out once and round their places, so that the same picture is the same bytes.

    The solver of the layout answers by the order of addresses in memory, in the last digits.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for ax in figure.axes:
        left, low, width, height = ax.get_position(original=True).bounds
        ax.set_position((round(left, digits), round(low, digits),
                         round(width, digits), round(height, digits)))  # fmt: skip


__all__ = ["network_of", "settle"]
