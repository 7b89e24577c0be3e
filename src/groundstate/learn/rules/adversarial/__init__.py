"""Rules with a second player: learned samplers of an energy, and discriminators against generators."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.learn.rules.adversarial.adversarial import Adversarial as Adversarial
    from groundstate.learn.rules.adversarial.game import Game as Game
    from groundstate.learn.rules.adversarial.sampler import ReverseKL as ReverseKL

lazy(__name__)
