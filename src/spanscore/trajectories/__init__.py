"""A closed trace into the tool calls of an agent."""
