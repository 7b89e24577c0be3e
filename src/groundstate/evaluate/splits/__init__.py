"""Which rows train and which rows judge: splits, folds, resamples, and fits over all of them."""
