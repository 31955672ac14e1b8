"""A trajectory into a score: a file for each evaluator."""
