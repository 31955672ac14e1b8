"""One file per evaluator; the type in the configuration is the file name."""
