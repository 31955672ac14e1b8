"""What is said of a report, whoever says it: as an event, as JSON, as counts, by name of its test case."""
