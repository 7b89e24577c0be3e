"""Principal axes and Gaussian factors."""
