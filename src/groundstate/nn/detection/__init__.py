"""Boxes, suppression and regions of interest: what detectors are made of."""
