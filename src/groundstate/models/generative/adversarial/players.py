"""What the models with a generator and a discriminator share."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval
from groundstate.compute.random import Key, seeded
from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.energy.networks.adversarial import AdversarialEnergy
from groundstate.errors import ShapeError
from groundstate.learn.base import History, Rule
from groundstate.learn.callbacks import Callback, Run
from groundstate.learn.rules.adversarial.game import Game
from groundstate.learn.solvers.networks.estimator import NetworkTraining
from groundstate.models.arrays import unwrap
from groundstate.models.base import Plan
from groundstate.models.generative.adversarial.matching import nearest_of_draws
from groundstate.models.generative.network import NetworkGenerator
from groundstate.models.generative.shapes import as_given
from groundstate.models.generative.without_density import Absent
from groundstate.nn.adversarial import (
    DenseDiscriminator,
    DenseGenerator,
    GivenDiscriminator,
    GivenGenerator,
)
from groundstate.nn.inspect.draw import Drawing
from groundstate.nn.inspect.players import draw_game


class GeneratorLoss(Callback):
    """The generator's mean loss of every epoch, into the history."""

    def on_epoch(self, run: Run) -> None:
        value, turns = game_of(run.problem.rule).taken()
        if turns:
            run.history.extra.setdefault("generator_loss", []).append(value)


class AdversarialGenerator(NetworkGenerator):
    r"""Base of the models of two players, :math:`x = G(z, y)` with :math:`z \sim N(0, I)`.

    Columns of categories are drawn by Gumbel-softmax, one-hot and with a gradient.

    Parameters
    ----------
    n_components : int
        Length of the noise z.
    n_critic : int
        Steps of the discriminator, each on a fresh batch, for one of the generator.
    generator : module, optional
        A network of your own from ``(B, n_components)`` to rows; with y the condition is appended to
        the columns.
    discriminator : module, optional
        A network of your own from rows of their own shape to logits ``(B, 1)``; with y the condition
        is appended to the columns (of images: as constant channels).
    activation : str
        Of the hidden layers of both; "leaky_relu" has the slope 0.2.
    hidden_layer_sizes : sequence of int
        Of both players.
    scale : "auto", "standard", "minmax" or None
        "auto" is "minmax" with a tanh at the end of the generator for images, "standard" and a
        linear end for tables.

    Attributes
    ----------
    generator_, discriminator_ : module
        The two players.
    generator_loss_curve_ : list of float, the generator's mean loss of every epoch
    loss_curve_ : list of float, the discriminator's loss of every epoch
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_critic": [Interval(Integral, 1, None, closed="left")],
        "generator": [nn.Module, None],
        "discriminator": [nn.Module, None],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "spectral_norm": ["boolean"],
    }
    category_code: ClassVar[str] = "onehot"
    log_prob_kind: Any = "none"
    score_samples: Any = Absent()
    score: Any = Absent()
    log_prob: Any = Absent()
    betas: ClassVar[tuple[float, float]] = (0.5, 0.999)
    precision: str = "32"  # a game is lost by rounding
    _store_private: ClassVar[tuple[str, ...]] = ("_second_moments",)

    n_components: int
    n_critic: int
    generator: nn.Module | None
    discriminator: nn.Module | None
    dropout: float = 0.0
    spectral_norm: bool = False
    energy_: AdversarialEnergy
    # a game has no objective whose rest would say when to stop
    early_stopping: bool = False
    validation_fraction: float = 0.0
    n_iter_no_change: float = math.inf
    tol: float = 0.0
    _second_moments: dict[str, Any] | None

    # --- the pieces ----------------------------------------------------------------------

    @property
    def _bounded(self) -> bool:
        """Whether the generator ends in a tanh, so that rows must lie in [-1, 1]."""
        return self._scaling == "minmax" and self.scale == "auto"

    @property
    def _scaling(self) -> str | None:
        if self.scale != "auto":
            return self.scale
        return "minmax" if len(self.event_shape_) > 1 else "standard"

    def _energy_of(self, x: Tensor, y: Tensor | None, key: Key) -> Energy:  # type: ignore[override]
        d, q = x.shape[1], 0 if y is None else y.shape[1]
        with seeded(key):
            return AdversarialEnergy(
                self._made_discriminator(d, q, key.fold("discriminator").torch()),
                self._made_generator(d, q, key.fold("generator").torch()),
                d, q,
            )  # fmt: skip

    def _made_generator(self, d: int, q: int, draws: torch.Generator) -> nn.Module:
        if self.generator is not None:
            return GivenGenerator(deepcopy(self.generator), self.n_components, d)
        end = "tanh" if self._bounded else "identity"
        bits = (-1.0, 1.0) if self._scaling == "minmax" else (0.0, 1.0)
        return DenseGenerator(
            self.n_components, self._hidden, self.coding_.widths, q, self.activation, end,
            bits=bits, generator=draws,
        )  # fmt: skip

    @property
    def _given_discriminator(self) -> nn.Module | None:
        return self.discriminator

    def _made_discriminator(self, d: int, q: int, draws: torch.Generator) -> nn.Module:
        own = self._given_discriminator
        if own is not None:
            shape = self.event_shape_ if len(self.event_shape_) > 1 else (d,)
            shape = (1, *shape) if len(shape) == 2 else shape
            return GivenDiscriminator(deepcopy(own), shape)
        return DenseDiscriminator(
            d, self._hidden, q, self.activation, self.dropout, self.spectral_norm, generator=draws
        )

    def _loss(self, energy: Energy) -> Rule:
        raise TypeError(f"{type(self).__name__} must define _loss(energy)")

    # --- learning ------------------------------------------------------------------------

    def _training(self, rule: Rule, total: float) -> NetworkTraining:
        made = super()._training(rule, total)
        self._second = None
        if self._descent is not None:
            kept = getattr(self, "_second_moments", None) if self._partial else None
            self._second = replace(self._descent, state=kept)
            game_of(rule).optimizer = self._second
        return made

    def _run(self, plan: Plan, data: Any, weight: Any, callbacks: Any, checked: bool) -> History:
        return super()._run(plan, data, weight, [*callbacks, GeneratorLoss()], checked)

    def _describe(self, history: History, plan: Plan) -> None:
        self._second_moments = self._second.packed() if self._partial and self._second else None
        game_of(plan.rule).optimizer = None  # it belongs to the run
        del self._second
        extra = history.extra.get("generator_loss", ())
        self._curves["generator"] = [*self._curves.get("generator", ()), *map(float, extra)]
        super()._describe(history, plan)

    @property
    def generator_loss_curve_(self) -> list[float]:
        return list(self._curves["generator"])

    @property
    def generator_(self) -> nn.Module:
        return self.energy_.generator

    @property
    def discriminator_(self) -> nn.Module:
        return self.energy_.discriminator

    def plot_network(self) -> Drawing:
        """The block diagram of the two players, as SVG; see ``groundstate.nn.inspect``."""
        check_is_fitted(self, "energy_")
        return draw_game(self.generator_, self.discriminator_, self.energy_.d, self.energy_.q)

    # --- answers -------------------------------------------------------------------------

    def _log_prob(self, x: Tensor, y: Tensor | None) -> Tensor:
        return -(self.energy_(x=x) if y is None else self.energy_(x=x, y=y))

    def _draw(
        self, n: int, y: Tensor | None, T: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        return self.energy_.draw(n, y, T, generator)

    def _fill(
        self, x: Tensor, unknown: Tensor, y: Tensor | None, how: str, generator: torch.Generator
    ) -> Tensor:
        return nearest_of_draws(self, x, unknown, y, how, generator)

    def decode(self, Z: Any, y: Any = None, *, random_state: Any = None) -> Any:
        """Rows that the generator makes of noise, ``(n, *event_shape_)`` from ``(n, n_components)``.

        Parameters
        ----------
        Z : array
        y : labels or values, where the model was fitted with y
        random_state : of the categories, which are drawn
        """
        check_is_fitted(self, "energy_")
        device, dtype = self.energy_.placement()
        z = torch.as_tensor(unwrap(Z)[0]).to(device, dtype)
        if z.ndim != 2 or z.shape[1] != self.n_components:
            raise ShapeError(f"noise has shape (n, {self.n_components}), got {tuple(z.shape)}")
        contexts = self._contexts(y, len(z))
        if contexts is None and self.condition_ is not None:
            raise ValueError(f"{type(self).__name__} was fitted with y, so it needs y here")
        generator = Key.of(random_state).torch(device)
        with answering(self.energy_, z), torch.no_grad():
            x = self.energy_.generator(z, contexts, generator)
        return as_given(self.coding_.decode(x), self)


def game_of(rule: Any) -> Game:
    """The game behind a rule that changes its rows."""
    while not isinstance(rule, Game):
        rule = rule.rule
    return rule
