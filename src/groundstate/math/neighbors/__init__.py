"""Nearest rows and rows within a radius."""
