"""Trees on columns cut into bins: codes, histograms of gradients, best cuts."""
