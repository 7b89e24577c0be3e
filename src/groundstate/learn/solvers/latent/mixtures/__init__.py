"""EM for mixtures: Gaussian components, missing values, any family."""
