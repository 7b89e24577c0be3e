"""Rules with a second player: learned samplers of an energy, and discriminators against generators."""

from groundstate.learn.rules.adversarial.adversarial import Adversarial as Adversarial
from groundstate.learn.rules.adversarial.game import Game as Game
from groundstate.learn.rules.adversarial.sampler import ReverseKL as ReverseKL
