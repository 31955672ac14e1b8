"""Keeps received requests on disk until their traces are scored, and finds them again after a restart."""
