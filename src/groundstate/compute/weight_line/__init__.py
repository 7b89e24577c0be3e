"""The weight line: rows in a canonical order, each as long as its weight; every random choice about rows."""
