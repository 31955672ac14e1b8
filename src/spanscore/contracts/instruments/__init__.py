"""Our instruments by name, unit and attributes, and tallies that are read at collection."""
