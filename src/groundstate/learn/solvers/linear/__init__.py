"""Least squares, ridge, evidence and smoothing splines in closed form."""
