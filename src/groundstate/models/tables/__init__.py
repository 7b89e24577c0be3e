"""Tables in: the preparation of columns and an estimator as one model."""
