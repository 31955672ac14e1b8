"""Every metric of spanscore: declared, measured, and handed to a sink."""
