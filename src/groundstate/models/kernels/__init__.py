"""Kernel ridge regression and kernel smoothers."""
