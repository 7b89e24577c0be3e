"""Logistic and softmax regression, with the penalty given or chosen by folds."""
