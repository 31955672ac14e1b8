"""Measurements of reports and of spanscore itself, added up for Prometheus or for a meter of OpenTelemetry."""
