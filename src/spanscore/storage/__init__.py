"""Requests and closed traces on disk, which survive a restart of the receiver."""
