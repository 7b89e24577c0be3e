"""Classes as Gaussians with full covariances."""
