"""Information: surprise, entropy, mutual information, maximum entropy, codes and free energies."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.math.info import inequalities as inequalities
    from groundstate.math.info.coding import ArithmeticCoder as ArithmeticCoder
    from groundstate.math.info.coding import Huffman as Huffman
    from groundstate.math.info.coding import Message as Message
    from groundstate.math.info.coding import huffman as huffman
    from groundstate.math.info.dependence import Dependence as Dependence
    from groundstate.math.info.dependence import randomised_dependence as randomised_dependence
    from groundstate.math.info.entropy import code_length as code_length
    from groundstate.math.info.entropy import cross_entropy as cross_entropy
    from groundstate.math.info.entropy import entropy as entropy
    from groundstate.math.info.entropy import surprise as surprise
    from groundstate.math.info.factors import FactorInformation as FactorInformation
    from groundstate.math.info.factors import mutual_information_gap as mutual_information_gap
    from groundstate.math.info.free_energy import free_energy as free_energy
    from groundstate.math.info.impurity import gain_ratio as gain_ratio
    from groundstate.math.info.impurity import gini as gini
    from groundstate.math.info.impurity import information_gain as information_gain
    from groundstate.math.info.impurity import split_info as split_info
    from groundstate.math.info.maxent import MaxEnt as MaxEnt
    from groundstate.math.info.maxent import maxent as maxent
    from groundstate.math.info.mutual_information import conditional_entropy as conditional_entropy
    from groundstate.math.info.mutual_information import mi_gaussian as mi_gaussian
    from groundstate.math.info.mutual_information import mutual_information as mutual_information
    from groundstate.math.info.pmf import Estimate as Estimate

lazy(__name__)
