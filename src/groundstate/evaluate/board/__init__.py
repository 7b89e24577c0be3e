"""Rankings: candidates of one table, leaderboards that keep the labels, contests in a folder."""
