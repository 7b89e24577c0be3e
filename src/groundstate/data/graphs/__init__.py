"""Graphs: nodes, edges and their features."""
