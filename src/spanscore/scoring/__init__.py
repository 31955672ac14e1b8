"""A closed trace into a report that is handed to the emitters."""
