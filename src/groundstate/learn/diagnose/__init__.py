"""What a training run looks like from outside: findings, signals, curvature, learning rates."""
