"""Expectations that are learned from correct runs."""

from spanscore.runs.learn.evidence import Noted as Noted
from spanscore.runs.learn.evidence import has_notes as has_notes
from spanscore.runs.learn.evidence import plain as plain
from spanscore.runs.learn.false_alarms import FalseAlarms as FalseAlarms
from spanscore.runs.learn.false_alarms import false_alarms as false_alarms
from spanscore.runs.learn.learned import Build as Build
from spanscore.runs.learn.learned import Learned as Learned
from spanscore.runs.learn.learned import learned as learned
