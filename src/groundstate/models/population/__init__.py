"""Many fits of one estimator as one program."""
