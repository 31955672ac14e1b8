"""Expected values that may have matchers: compiled once, compared with many values."""
