"""Sequences of numbers, of one length or of many."""
