"""The population axis: P models of one shape as one tensor program, its optimisers and written-out passes."""
