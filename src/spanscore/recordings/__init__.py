"""Files of recorded telemetry, read and written."""
