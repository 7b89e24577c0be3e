"""One race over all configurations, in stages that each leave a whole assessment."""
