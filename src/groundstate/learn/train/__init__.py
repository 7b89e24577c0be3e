"""The stochastic engine: batches, steps, optimisers, schedules, stops, checkpoints, shards."""
