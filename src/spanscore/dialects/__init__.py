"""One file per instrumentation dialect; the name is the file name."""
