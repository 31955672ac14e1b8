"""Expectations out of runs that were right."""

from spanscore.learn.learned import Build as Build
from spanscore.learn.learned import FalseAlarms as FalseAlarms
from spanscore.learn.learned import Learned as Learned
from spanscore.learn.learned import false_alarms as false_alarms
from spanscore.learn.learned import learned as learned
from spanscore.learn.noted import Noted as Noted
from spanscore.learn.noted import has_notes as has_notes
from spanscore.learn.noted import plain as plain
