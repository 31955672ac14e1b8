"""Requests, closed traces and conversations on disk, which survive a restart of the receiver."""
