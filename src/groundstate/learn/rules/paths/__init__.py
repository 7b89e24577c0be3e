"""Rules that learn a field along paths from noise to data."""

from groundstate.learn.rules.paths.flow_matching import VelocityMatching as VelocityMatching
