"""Benchmarks of spanscore, measured beside their yardsticks and peers: `python -m bench`."""
