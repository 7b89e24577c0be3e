"""Pairs of networks, rows to codes and codes back to rows."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from torch import nn

from groundstate.compute.random import Key
from groundstate.errors import ShapeError
from groundstate.nn.blocks.activations import activation as make_activation
from groundstate.nn.blocks.mlp import MLP
from groundstate.nn.conv.coder import ConvDecoder, ConvEncoder
from groundstate.nn.heads.likelihoods import Likelihood

LISTING = (128, 64, 12)  # hidden layers of the listing for MNIST, before a code of 3
LISTING_CODE = 3
NETWORKS = ("conv", "mnist-listing")


def coder_pair(
    network: Any,
    likelihood: Likelihood,
    code: int,
    *,
    hidden: Sequence[int],
    activation: str,
    code_activation: str | None = None,
    numbers: int | None = None,
    condition: int = 0,
    event: tuple[int, ...] = (),
    key: Key,
) -> tuple[nn.Module, nn.Module]:
    """An encoder from ``likelihood.n_inputs + condition`` numbers, a decoder to ``n_outputs``.

    Parameters
    ----------
    network : None for dense layers, "conv", "mnist-listing", or a pair of modules, which are copied
    likelihood : says how wide both ends are
    code : length of the code
    hidden, activation : hidden layers of the encoder; the decoder mirrors them
    code_activation : on the code; None is linear
    numbers : that the encoder gives; None is ``code``
    condition : numbers of the context, which join the inputs and the code
    event : shape of a row, for "conv"
    key : source of the initial weights

    Examples
    --------
    >>> from groundstate.nn.heads.likelihoods import SquaredError
    >>> f, g = coder_pair(None, SquaredError(5), 2, hidden=(8, 4), activation="relu", key=Key.of(0))
    >>> f.sizes, g.sizes
    ((5, 8, 4, 2), (2, 4, 8, 5))
    """
    ends = likelihood.n_inputs + condition, likelihood.n_outputs
    numbers = code if numbers is None else numbers
    encoder_key, decoder_key = (key.fold(name).torch() for name in ("encoder", "decoder"))
    if isinstance(network, tuple | list):
        return _given(network)
    if network == "mnist-listing":
        hidden, activation = LISTING, "tanh"
    elif network == "conv":
        if likelihood.n_inputs != likelihood.d:
            raise ShapeError("network='conv' reads pictures, not columns of categories")
        channels = tuple(hidden)
        encoder: nn.Module = ConvEncoder(
            event, channels, numbers, activation=activation, context=condition,
            generator=encoder_key,
        )  # fmt: skip
        if code_activation is not None:
            encoder = nn.Sequential(encoder, make_activation(code_activation))
        outputs = likelihood.n_outputs // likelihood.d
        decoder = ConvDecoder(
            event, channels[::-1], code + condition, activation=activation, outputs=outputs,
            generator=decoder_key,
        )  # fmt: skip
        return encoder, decoder
    elif network is not None:
        raise ValueError(
            f"network must be None, one of {', '.join(NETWORKS)}, or a pair (encoder, decoder) of "
            f"modules, got {network!r}"
        )
    last = "sigmoid" if network == "mnist-listing" else None
    return (
        MLP(ends[0], hidden, numbers, activation, code_activation, generator=encoder_key),
        MLP(code + condition, tuple(hidden)[::-1], ends[1], activation, last,
            generator=decoder_key),
    )  # fmt: skip


def _given(network: Sequence[Any]) -> tuple[nn.Module, nn.Module]:
    if len(network) != 2 or not all(isinstance(part, nn.Module) for part in network):
        raise TypeError(
            "network is a pair of modules, encoder and decoder, got "
            f"{tuple(type(part).__name__ for part in network)}"
        )
    encoder, decoder = network
    return deepcopy(encoder), deepcopy(decoder)
