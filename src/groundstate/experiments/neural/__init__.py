"""Claims about networks: capacity, signals, regularisation, steps, landscapes."""
