"""Rules about which tools are called, and the calls that break them."""
