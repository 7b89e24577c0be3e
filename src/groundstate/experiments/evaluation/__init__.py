"""Claims about evaluation: scores, their spread, choosing, bounds, splits and tuning."""
