"""STUDIO: fitted models in the browser, on this machine only; ``groundstate studio``."""
