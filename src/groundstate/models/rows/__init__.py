"""Rows that are no tables: images, texts, sequences, graphs."""
