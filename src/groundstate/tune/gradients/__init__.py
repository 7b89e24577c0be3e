"""Tuning by gradients through learning."""
