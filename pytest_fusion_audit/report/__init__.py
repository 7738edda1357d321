"""Text and markdown of a scorecard. Reads the scorecard's JSON, computes nothing of its own."""
