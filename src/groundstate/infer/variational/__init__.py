"""The best distribution of a family, and the bound it gives."""
