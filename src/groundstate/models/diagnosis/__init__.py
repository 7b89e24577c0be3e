"""What may be wrong with a fitted model without labels, with numbers and advice."""

from groundstate.models.diagnosis.diagnose import diagnose

__all__ = ["diagnose"]
