"""Sampling by what an agent did: the rules, and the consistent probability sampling of OpenTelemetry."""
