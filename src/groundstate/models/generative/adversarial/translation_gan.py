"""Image to image, from pairs."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils import Tags
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.errors import ShapeError
from groundstate.learn.base import Rule
from groundstate.learn.rules.adversarial.game import Game
from groundstate.models.arrays import unwrap
from groundstate.models.generative.adversarial.players import AdversarialGenerator
from groundstate.nn.adversarial import PatchDiscriminator, UNetGenerator
from groundstate.registry import models


@models.register(family="adversarial", task="generation", role="generator")
class TranslationGAN(AdversarialGenerator):
    r"""An image b for an image a, learned from pairs: a U-Net paints, patches of the pair are judged.

    .. math:: \min_G\max_D E\log D(a, b) + E\log(1 - D(a, G(z, a))) + \lambda E\|b - G(z, a)\|_1/d,
        \qquad e(b, a) = -\mathrm{logit}\,D(a, b)

    ``fit(B, A)`` takes the images to paint first and those they are painted from as y, as every
    generator takes what it is given; ``translate(A)`` paints. The game makes an image look real, the
    L1 term makes it the right one.

    Parameters
    ----------
    n_components : int
        Length of the noise; 0 makes b a function of a.
    loss : "nonsaturating", "minimax", "lsgan" or "hinge"
        Of the game; see ``groundstate.learn.losses.gan``.
    match : float
        λ of the L1 distance, for each pixel.
    conditional_d : bool
        Whether the discriminator sees the pair; one that sees b alone takes any real image for good.
    base : int
        Maps of the U-Net at full size, doubled at every halving.
    depth : int
        Halvings of the U-Net.
    d_base, d_depth : int
        The same of the discriminator; a deeper one judges larger patches.

    Attributes
    ----------
    given_shape_ : tuple, channels, height and width of a

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import TranslationGAN
    >>> A = np.random.default_rng(0).random((40, 8, 8)).astype("float32")
    >>> model = TranslationGAN(base=4, depth=1, d_base=4, d_depth=1, max_iter=10, batch_size=20,
    ...                        learning_rate_init=2e-3, random_state=0).fit(1 - A, A)
    >>> painted = model.translate(A)
    >>> painted.shape, bool(np.abs(painted - (1 - A)).mean() < 0.25)
    ((40, 8, 8), True)
    """

    rows: ClassVar[str] = "image"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 0, None, closed="left")],
        "loss": [StrOptions({"nonsaturating", "minimax", "lsgan", "hinge"})],
        "match": [Interval(Real, 0, None, closed="left")],
        "conditional_d": ["boolean"],
        "base": [Interval(Integral, 1, None, closed="left")],
        "depth": [Interval(Integral, 1, None, closed="left")],
        "d_base": [Interval(Integral, 1, None, closed="left")],
        "d_depth": [Interval(Integral, 1, None, closed="left")],
        "scale": [StrOptions({"auto", "standard", "minmax"}), None],
    }
    loss: str
    match: float
    conditional_d: bool
    base: int
    depth: int
    d_base: int
    d_depth: int
    given_shape_: tuple[int, ...]

    def __init__(
        self,
        n_components: int = 0,
        *,
        loss: str = "nonsaturating",
        match: float = 100.0,
        conditional_d: bool = True,
        base: int = 16,
        depth: int = 2,
        d_base: int = 32,
        d_depth: int = 2,
        n_critic: int = 1,
        generator: nn.Module | None = None,
        discriminator: nn.Module | None = None,
        solver: Any = "adam",
        learning_rate_init: float = 2e-4,
        batch_size: int = 16,
        max_iter: int = 100,
        alpha: float = 0.0,
        warm_start: bool = False,
        scale: str | None = "auto",
        ema_decay: float | None = None,
        verbose: int = 0,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _example_target(self, X: Any) -> Any:
        return X

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn to paint images ``X`` from images ``y``; a weight of 2 is the pair twice."""
        if y is None:
            raise ValueError(
                "TranslationGAN requires y to be passed, but the target y is None: fit(B, A) paints "
                "images B from images A"
            )
        return super().fit(X, y, sample_weight)

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        a, shape = _flat_images(y, "y")
        b_shape = _image_shape(X, "X")
        if shape[1:] != b_shape[1:]:
            raise ShapeError(
                f"a U-Net keeps the size: images X are {b_shape[1]}x{b_shape[2]}, images y "
                f"{shape[1]}x{shape[2]}; resize one of them"
            )
        least = 2**self.d_depth
        if self.discriminator is None and min(shape[1:]) < least:
            raise ShapeError(
                f"d_depth={self.d_depth} halvings need images of {least}x{least} or more, got "
                f"{shape[1]}x{shape[2]}; take a smaller d_depth"
            )
        rows, codes, attributes = super()._checked(X, a)
        return rows, codes, {**attributes, "given_shape_": shape}

    def _contexts(self, y: Any, n: int) -> Tensor | None:
        if y is None:
            return None
        a, shape = _flat_images(y, "y")
        if shape != self.given_shape_:
            raise ShapeError(f"y were images of shape {self.given_shape_} in fit, got {shape}")
        return super()._contexts(a, n)

    @property
    def _target_shape(self) -> tuple[int, ...]:
        return (1, *self.event_shape_) if len(self.event_shape_) == 2 else self.event_shape_

    def _made_generator(self, d: int, q: int, draws: torch.Generator) -> nn.Module:
        if self.generator is not None:
            return super()._made_generator(d, q, draws)
        end = "tanh" if self._bounded else "identity"
        return UNetGenerator(
            self.given_shape_, self._target_shape, self.n_components, self.base, self.depth, end
        )

    def _made_discriminator(self, d: int, q: int, draws: torch.Generator) -> nn.Module:
        if self.discriminator is not None:
            return super()._made_discriminator(d, q, draws)
        return PatchDiscriminator(
            self.given_shape_, self._target_shape, self.d_base, self.d_depth, self.conditional_d
        )

    def _loss(self, energy: Energy) -> Rule:
        return Game(self.loss, self.n_critic, match=self.match)

    def translate(self, A: Any, *, random_state: Any = None) -> Any:
        """Images painted from images ``A``, ``(n, *event_shape_)``."""
        return self.sample(len(A), A, random_state=random_state)

    def discriminator_score(self, X: Any, y: Any) -> Any:
        r"""How probably the discriminator takes each pair for real, :math:`\sigma(D(y, x))`, ``(n,)``."""
        x, home = self._rows(X)
        c = self._contexts(y, len(x))
        with answering(self.energy_, x):
            return home.give(torch.sigmoid(-self._energies(x, c, None)))


def _image_shape(images: Any, name: str) -> tuple[int, int, int]:
    """Channels, height and width of images ``(n, H, W)`` or ``(n, C, H, W)``."""
    shape = tuple(int(n) for n in np.shape(unwrap(images)[0]))
    if len(shape) not in (3, 4):
        raise ShapeError(
            f"TranslationGAN takes images (n, H, W) or (n, C, H, W), but {name} has shape {shape}"
        )
    return (1, *shape[1:]) if len(shape) == 3 else shape[1:]  # type: ignore[return-value]


def _flat_images(images: Any, name: str) -> tuple[Any, tuple[int, ...]]:
    array = np.asarray(unwrap(images)[0])
    shape = _image_shape(array, name)
    return array.reshape(len(array), -1), shape
