"""How the networks behind estimators learn."""
