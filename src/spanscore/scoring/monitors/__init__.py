"""Monitors: alarms about runs that fail more often than they may, with a bounded rate of false ones."""
