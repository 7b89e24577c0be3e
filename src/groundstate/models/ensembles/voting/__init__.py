"""Voting: different estimators, averaged."""
