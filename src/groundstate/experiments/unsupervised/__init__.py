"""Claims about learning without labels: clusters, mixtures, factors, maps and metrics."""
