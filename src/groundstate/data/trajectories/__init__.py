"""Trajectories: observations, actions and rewards."""
