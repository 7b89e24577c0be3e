"""Information: surprise, entropy, mutual information, maximum entropy, codes and free energies."""

from groundstate.math.info import inequalities
from groundstate.math.info.coding import ArithmeticCoder, Huffman, Message, huffman
from groundstate.math.info.entropy import code_length, cross_entropy, entropy, surprise
from groundstate.math.info.free_energy import free_energy
from groundstate.math.info.impurity import gain_ratio, gini, information_gain, split_info
from groundstate.math.info.maxent import MaxEnt, maxent
from groundstate.math.info.mutual_information import (
    conditional_entropy,
    mi_gaussian,
    mutual_information,
)
from groundstate.math.info.pmf import Estimate

__all__ = [
    "ArithmeticCoder",
    "Estimate",
    "Huffman",
    "MaxEnt",
    "Message",
    "code_length",
    "conditional_entropy",
    "cross_entropy",
    "entropy",
    "free_energy",
    "gain_ratio",
    "gini",
    "huffman",
    "inequalities",
    "information_gain",
    "maxent",
    "mi_gaussian",
    "mutual_information",
    "split_info",
    "surprise",
]
