"""Attention: masks, positions, heads, transformer blocks and stacks."""
