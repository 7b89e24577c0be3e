"""What a network holds, computes and looks like."""
