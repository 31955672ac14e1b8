"""A report as an event, as JSON and as a page; tallies of reports."""
