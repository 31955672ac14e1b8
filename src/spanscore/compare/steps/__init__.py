"""The steps of an expected trajectory, and the calls that take them with the least deviations."""
