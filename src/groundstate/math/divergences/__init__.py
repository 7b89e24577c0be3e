"""How far apart two distributions are: f-divergences, Wasserstein, Sinkhorn, Fréchet and kernel distances."""
