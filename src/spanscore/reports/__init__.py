"""A report as an event, as JSON and as a page; the reasons of failures; tallies of reports."""
