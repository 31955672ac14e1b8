"""The application's OpenTelemetry SDK as spanscore meets it: its providers and spans, and who we are in it."""
