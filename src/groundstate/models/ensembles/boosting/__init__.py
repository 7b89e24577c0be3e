"""Boosting: members that correct one another."""
