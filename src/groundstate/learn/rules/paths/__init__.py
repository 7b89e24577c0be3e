"""Rules that learn a field along paths from noise to data."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.learn.rules.paths.flow_matching import VelocityMatching as VelocityMatching

lazy(__name__)
