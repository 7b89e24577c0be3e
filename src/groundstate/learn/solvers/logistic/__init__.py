"""Logistic and softmax regression: one fit, folds, paths, sparse weights."""
