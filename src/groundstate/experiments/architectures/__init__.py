"""Networks: what their form does."""
