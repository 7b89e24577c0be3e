"""Looking inside a network, or the network of a fitted estimator: filters, maps, what excites a unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from groundstate.errors import ShapeError
from groundstate.models.networks.cam import net_and_rows, net_of
from groundstate.nn.inspect import viewer


def filters(model: Any, layer: nn.Module | str | None = None) -> Tensor:
    """The filters of a convolution of a module or a fitted estimator, ``(C_out, C_in, *kernel)``.

    Parameters
    ----------
    model : module, or a fitted estimator around one
    layer : a convolution, or its name; by default the first

    >>> filters(nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU())).shape
    torch.Size([6, 1, 5, 5])
    """
    return viewer.filters(net_of(model), layer)


def feature_maps(model: Any, X: Any) -> dict[str, Tensor]:
    """What every layer with maps makes of pictures, by name, in the order of execution.

    Parameters
    ----------
    model : module, or a fitted estimator around one
    X : pictures ``(B, C, H, W)``; of an estimator in any form that it takes
    """
    return viewer.feature_maps(*net_and_rows(model, X))


def maximise_activation(
    model: Any,
    layer: nn.Module | str,
    unit: int,
    shape: Sequence[int] | None = None,
    **settings: Any,
) -> Tensor:
    r"""The input that excites a unit most, :math:`\arg\max_x h_k(x)`: inference over x.

    Parameters
    ----------
    model : module, or a fitted estimator around one
    layer : a module of the network, or its name
    unit : channel or feature
    shape : of one input; a fitted estimator knows it
    settings : ``steps``, ``lr``, ``low``, ``high`` and ``generator`` of
        :func:`groundstate.nn.inspect.viewer.maximise_activation`
    """
    if shape is None:
        energy = getattr(model, "energy_", None)
        if energy is None:
            raise ShapeError("give the shape of one input, such as shape=(1, 28, 28)")
        shape = energy.spaces["x"].shape
    return viewer.maximise_activation(net_of(model), layer, unit, shape, **settings)
