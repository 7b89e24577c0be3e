"""Diffusion models: learn to remove noise, and rows come out of pure noise."""
