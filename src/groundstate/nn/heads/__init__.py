"""The end of a network: raw outputs become a distribution of the outcome."""
