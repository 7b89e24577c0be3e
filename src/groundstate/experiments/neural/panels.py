"""What experiments with networks share: the network of a member."""

from __future__ import annotations

from torch import nn

from groundstate.energy import Energy


def network_of(energy: Energy) -> nn.Module:
    """The network inside an energy."""
    net = energy.net
    assert isinstance(net, nn.Module)
    return net
