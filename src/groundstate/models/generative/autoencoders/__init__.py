"""Generators with a code: autoencoders and variational autoencoders."""
