"""Functions of coordinates as networks, with their derivatives in one pass."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.nn.coordinate.constrained import Constrained as Constrained
    from groundstate.nn.coordinate.derivatives import derivatives as derivatives
    from groundstate.nn.coordinate.fields import Field as Field
    from groundstate.nn.coordinate.fields import fields as fields
    from groundstate.nn.coordinate.net import CoordinateNet as CoordinateNet
    from groundstate.nn.coordinate.net import FourierFeatures as FourierFeatures
    from groundstate.nn.coordinate.net import Rescale as Rescale
    from groundstate.nn.coordinate.net import Sine as Sine

lazy(__name__)
