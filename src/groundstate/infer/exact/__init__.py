"""Exact answers: closed forms, enumeration, dynamic programming, elimination, quadrature."""
