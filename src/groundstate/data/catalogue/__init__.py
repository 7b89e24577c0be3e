"""Well-known sets by name: what they hold, and readers of copies that a user has."""
