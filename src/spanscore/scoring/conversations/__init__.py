"""Conversations: the turns, each a trace, that are evaluated together."""
