"""Functions of coordinates from values at points."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.errors import ShapeError
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.networks.answers import NetworkRegressor
from groundstate.models.traits import Traits
from groundstate.nn.coordinate import CoordinateNet
from groundstate.nn.coordinate.net import ACTIVATIONS
from groundstate.registry import models


@models.register(
    family="physics", task="regression", role="regressor", max_rows=200_000, auto=False
)
class FunctionRegressor(NetworkRegressor):
    r"""A function of coordinates as a network, from its values at points.

    .. math:: e(x, y) = \tfrac12\|y - u_\theta(\tilde x)\|^2, \qquad \tilde x \in [-1, 1]^d

    with inputs scaled to the box of the points. Smooth activations make derivatives of u smooth;
    ``activation="sine"`` (SIREN) and ``fourier`` features follow fine detail. An image is such a function of
    two coordinates: ``fit_image(img)`` learns it, ``render(shape)`` draws it at any resolution.

    Parameters
    ----------
    hidden : sequence of int
        Widths of the hidden layers.
    activation : {"tanh", "sine", "gelu", "sigmoid", "silu", "softplus"}
    fourier : int
        Number of random Fourier features of the coordinates; 0 for none.
    sigma : float
        Spread of their frequencies.
    omega : float
        :math:`\omega_0` of sines.
    loss : str or Head
        As in ``MLPRegressor``.

    Attributes
    ----------
    image_shape_ : tuple, after ``fit_image``

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import FunctionRegressor
    >>> x = np.linspace(0, 5, 100)[:, None]
    >>> model = FunctionRegressor(hidden=(20, 20), solver="lbfgs", max_iter=500, random_state=0)
    >>> model.fit(x, np.sin(3 * x[:, 0])).score(x, np.sin(3 * x[:, 0])) > 0.999
    True
    """

    traits = Traits(
        program=None,
        space={
            "alpha": settings.Real(1e-6, 1e-1, log=True),
            "learning_rate_init": settings.Real(1e-4, 3e-2, log=True),
            "hidden": settings.Choice((20, 20, 20, 20), (64, 64), (64, 64, 64)),
        },
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "hidden": ["array-like"],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "fourier": [Interval(Integral, 0, None, closed="left")],
        "sigma": [Interval(Real, 0, None, closed="neither")],
        "omega": [Interval(Real, 0, None, closed="neither")],
    }
    hidden: Any
    activation: str
    fourier: int
    sigma: float
    omega: float
    image_shape_: tuple[int, ...]

    def __init__(
        self,
        hidden: Any = (20, 20, 20, 20),
        activation: str = "tanh",
        fourier: int = 0,
        *,
        sigma: float = 1.0,
        omega: float = 30.0,
        loss: Any = "squared_error",
        solver: str = "adam",
        alpha: float = 0.0,
        batch_size: Any = "auto",
        learning_rate: str = "constant",
        learning_rate_init: float = 0.001,
        power_t: float = 0.5,
        max_iter: int = 200,
        shuffle: bool = True,
        random_state: Any = None,
        tol: float = 1e-4,
        verbose: Any = False,
        warm_start: bool = False,
        momentum: float = 0.9,
        nesterovs_momentum: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        n_iter_no_change: float = 10,
        max_fun: int = 15000,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        seen = X if weight is None else X[weight > 0]  # rows that do not count span no box
        self._box = seen.amin(0).tolist(), seen.amax(0).tolist()
        try:
            return super()._build(X, y, weight)
        finally:
            del self._box

    def _network(self, d: int, outputs: int, key: Key) -> nn.Module:
        low, high = self._box
        return CoordinateNet(
            d, outputs, tuple(int(n) for n in self.hidden), self.activation, self.fourier, low, high,
            omega=self.omega, sigma=self.sigma, generator=key.torch(),
        )  # fmt: skip

    # --- images ---------------------------------------------------------------------------

    def fit_image(self, img: Any) -> Self:
        """Learn an image ``(H, W)`` or ``(H, W, C)`` as a function of the place, with rows and columns
        of pixels at :math:`(i + \\tfrac12)/H` and :math:`(j + \\tfrac12)/W`.
        """
        image = np.asarray(img, dtype=np.float64)
        if image.ndim not in (2, 3) or not image.size:
            raise ShapeError(f"an image is (H, W) or (H, W, C), got shape {image.shape}")
        places = pixels(*image.shape[:2])
        values = image.reshape(len(places), -1)
        self.fit(places, values[:, 0] if image.ndim == 2 else values)
        self.image_shape_ = image.shape
        return self

    def render(self, shape: tuple[int, int] | None = None) -> NDArray[np.float64]:
        """The image at any resolution, ``(H, W)`` or ``(H, W, C)``; the learned one by default."""
        check_is_fitted(self, "image_shape_")
        height, width = self.image_shape_[:2] if shape is None else shape
        values = np.asarray(self.predict(pixels(height, width)))
        return values.reshape(height, width, *self.image_shape_[2:])


def pixels(height: int, width: int) -> NDArray[np.float64]:
    """The middles of pixels in the unit square, ``(H·W, 2)``, row by row."""
    i, j = (np.arange(height) + 0.5) / height, (np.arange(width) + 0.5) / width
    return np.stack(np.meshgrid(i, j, indexing="ij"), -1).reshape(-1, 2)
