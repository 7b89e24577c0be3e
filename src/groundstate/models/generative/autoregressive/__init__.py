"""Densities by the chain rule: tables column by column, pictures pixel by pixel."""
