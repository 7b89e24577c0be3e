"""Ordinary differential equations: fixed and adaptive steps, differentiable, with adjoints."""
