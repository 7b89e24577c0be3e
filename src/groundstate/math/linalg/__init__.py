"""Linear systems and covariances: dense, low-rank and matrix-free."""
