"""How messages say things: safely on a terminal, without what was received, with the nearest name."""
