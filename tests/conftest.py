"""Settings of all tests."""

from hypothesis import HealthCheck, settings

# How long an example takes says something of the machine, not of the code: nothing here is a timed test.
settings.register_profile("spanscore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("spanscore")
