"""Where spans come in; one file per way."""
