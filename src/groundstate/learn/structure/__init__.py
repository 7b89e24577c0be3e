"""Which variables depend on which: directed graphs from rows."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.learn.structure.hill_climbing import hill_climb as hill_climb
    from groundstate.learn.structure.pc import PartialDAG as PartialDAG
    from groundstate.learn.structure.pc import pc as pc
    from groundstate.learn.structure.scores import BDeu as BDeu
    from groundstate.learn.structure.scores import DiscreteBIC as DiscreteBIC
    from groundstate.learn.structure.scores import GaussianBIC as GaussianBIC
    from groundstate.learn.structure.trees import chow_liu as chow_liu
    from groundstate.learn.structure.trees import mutual_information as mutual_information

lazy(__name__)
