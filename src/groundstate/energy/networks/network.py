r"""A network and what its outputs mean: the energy of a label, or of an outcome under a head."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.basic.labels import ClassEnergy
from groundstate.energy.networks.location import LocationHead
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Binary, Count, Real, Space
from groundstate.errors import ShapeError
from groundstate.math.distributions.operations import somewhere, tempered
from groundstate.nn.heads.base import DistributionHead, Head

SPACES: dict[str, Callable[[int], Space]] = {
    "real": Real,
    "positive": lambda m: Real(m, low=0.0),
    "unit": lambda m: Real(m, low=0.0, high=1.0),
    "angle": lambda m: Real(m, low=-math.pi, high=math.pi),
    "binary": Binary,
    "count": Count,
}


def check_outputs(net: nn.Module, shape: Sequence[int], allowed: Sequence[int], what: str) -> int:
    """How many outputs a network has; an error names the sizes that would fit.

    One row of zeros is tried, in evaluation mode and without gradients.

    >>> check_outputs(nn.Linear(4, 3), (4,), (3,), "3 classes need")
    3
    """
    like = next((p for p in net.parameters() if p.is_floating_point()), torch.zeros(()))
    was = {module: module.training for module in net.modules()}
    row = torch.zeros(1, *shape, dtype=like.dtype, device=like.device)
    try:
        with torch.no_grad():
            found = net.eval()(row)
    except (RuntimeError, ValueError) as error:
        raise ShapeError(
            f"the module {type(net).__name__} does not take rows of shape {tuple(shape)}: "
            f"{str(error).splitlines()[0]}; its first layer must fit the columns of X"
        ) from None
    finally:
        for module, training in was.items():
            module.training = training
    sizes = " or ".join(f"(B, {k})" for k in allowed)
    if not isinstance(found, Tensor) or found.ndim != 2 or found.shape[1] not in allowed:
        given = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise ShapeError(
            f"the module {type(net).__name__} gives {given} for one row, but {what} {sizes}; change "
            "the size of its last layer"
        )
    return int(found.shape[1])


@registered(r"e(x, y) = -f_\theta(x)_y", lambda: NetworkClassEnergy(3, 4, nn.Linear(3, 4)))
class NetworkClassEnergy(ClassEnergy):
    r"""A network gives the score of every label, :math:`e(x, y) = -f_\theta(x)_y`.

    For two labels one output is enough: :math:`e(x, 0) = 0` and :math:`e(x, 1) = -f_\theta(x)`, so
    that :math:`p(1\mid x)` is the logistic function of the output.

    Parameters
    ----------
    d : number of features, or the event shape of x
    k : number of classes
    net : module from ``(B, d)`` to ``(B, k)``, or to ``(B, 1)`` for two classes

    Attributes
    ----------
    net : module
    single : whether one output stands for two classes

    Examples
    --------
    >>> e = NetworkClassEnergy(2, 2, nn.Linear(2, 1))
    >>> e.table("y", x=torch.zeros(4, 2)).shape
    torch.Size([4, 2])
    """

    def __init__(self, d: int | Sequence[int], k: int, net: nn.Module) -> None:
        shape = (d,) if isinstance(d, int) else tuple(d)
        super().__init__(net, shape, k)
        allowed = (1, 2) if k == 2 else (k,)
        self.single = check_outputs(net, shape, allowed, f"{k} classes need") == 1

    def config(self) -> dict[str, Any]:
        return {"d": list(self.spaces["x"].shape), "k": self.k, "net": self.net}

    def _raw(self, x: Any) -> Any:
        if not self.single:
            return super()._raw(x)
        return nn.functional.pad(self.net(x), (1, 0))  # label 0 has the score 0


@registered(
    r"e(x, y) = \ell(f_\theta(x), y)",
    lambda: NetworkEnergy(3, DistributionHead("normal", 2), nn.Linear(3, 4)),
)
class NetworkEnergy(Energy):
    r"""A network and a head, :math:`e(x, y) = \ell(f_\theta(x), y)`.

    With a distribution as head :math:`\ell = -\log p(y\mid f_\theta(x))`, normalised over y, so
    that lowering e on the data is maximum likelihood; other heads are losses whose minimum over y
    is their prediction.

    Parameters
    ----------
    d : number of features, or the event shape of x
    head : what the outputs mean; see ``groundstate.nn.heads.base``
    net : module from ``(B, d)`` to ``(B, head.n_outputs)``

    Examples
    --------
    >>> e = NetworkEnergy(2, DistributionHead("poisson"), nn.Linear(2, 1))
    >>> e.spaces["y"], e.distribution(torch.zeros(3, 2)).batch_shape
    (Count(1), torch.Size([3]))
    """

    def __init__(self, d: int | Sequence[int], head: Head, net: nn.Module) -> None:
        shape = (d,) if isinstance(d, int) else tuple(d)
        super().__init__(x=Real(*shape), y=SPACES[head.kind](head.m))
        check_outputs(net, shape, (head.n_outputs,), f"the outcome ({head.name}) needs")
        self.net, self.head = net, head
        self.likelihood = head.has_dist
        self.bounded_below = not head.is_likelihood  # a loss, which is at least 0
        self.normalised = frozenset({"y"}) if self.likelihood else frozenset()
        location = isinstance(head, LocationHead)
        self.has_constant = self.likelihood or location
        self.has_distribution = self.likelihood or (
            isinstance(head, LocationHead) and head.has_distribution
        )
        normal = head.name in ("normal", "multivariate_normal", "squared_error")
        self.gaussian = frozenset({"y"}) if normal and self.has_distribution else frozenset()

    def config(self) -> dict[str, Any]:
        return {"d": list(self.spaces["x"].shape), "head": self.head, "net": self.net}

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        raw: Tensor = self.net(x)
        head = self.head
        if not self.likelihood or not self.training:
            loss: Tensor = head(raw, y)
            return loss
        # rows that are learned from were checked: no look at the support, which would wait for a GPU
        if head.name == "bernoulli":
            each = nn.functional.binary_cross_entropy_with_logits(raw, y, reduction="none")
            return each.sum(-1)
        return -head.dist(raw).log_prob(head.target(y, raw))

    def distribution(self, x: Tensor) -> Distribution:
        """The distribution of y, batch shape ``(B,)``."""
        return self.head.dist(self.net(x))

    def mean(self, x: Tensor) -> Tensor:
        """What is predicted: the mean of a distribution, the minimiser of a loss, ``(B, m)``."""
        return self.head.predict(self.net(x))

    @offers.argmin("y", when=lambda energy: not energy.likelihood)
    def best(self, x: Tensor) -> Tensor:
        return self.mean(x)

    @offers.conditional("y", when=lambda energy: energy.has_distribution)
    def conditional(self, x: Tensor, T: float = 1.0) -> Distribution:
        if isinstance(self.head, LocationHead):
            return self.head.dist(self.net(x), T)
        return tempered(self.distribution(x), T)

    @offers.log_partition("y", when=lambda energy: energy.has_constant)
    def constant(self, x: Tensor, T: float = 1.0) -> Tensor:
        if isinstance(self.head, LocationHead):
            return x.new_full((x.shape[0],), self.head.log_constant(T))
        if T == 1:
            return x.new_zeros(x.shape[0])
        distribution = self.distribution(x)
        hot = tempered(distribution, T)
        y = somewhere(hot).detach()
        return distribution.log_prob(y) / T - hot.log_prob(y)
