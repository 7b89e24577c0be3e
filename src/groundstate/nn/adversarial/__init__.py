"""Networks of two players: generators, discriminators, and what their outputs mean."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.nn.adversarial.columns import Columns as Columns
    from groundstate.nn.adversarial.dense import DenseDiscriminator as DenseDiscriminator
    from groundstate.nn.adversarial.dense import DenseGenerator as DenseGenerator
    from groundstate.nn.adversarial.given import GivenDiscriminator as GivenDiscriminator
    from groundstate.nn.adversarial.given import GivenGenerator as GivenGenerator
    from groundstate.nn.adversarial.reconstruction import Reconstruction as Reconstruction
    from groundstate.nn.adversarial.translate import PatchDiscriminator as PatchDiscriminator
    from groundstate.nn.adversarial.translate import UNetGenerator as UNetGenerator

lazy(__name__)
