"""The application's OpenTelemetry SDK: its providers, spans and log records."""
