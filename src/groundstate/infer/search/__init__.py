"""Search over discrete structures that are built step by step."""
