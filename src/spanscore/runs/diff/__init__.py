"""Two versions of an agent compared: whether the new one is better or worse, and how its behaviour differs."""

from spanscore.runs.diff.behaviour import Change as Change
from spanscore.runs.diff.behaviour import changes as changes
from spanscore.runs.diff.samples import Pairing as Pairing
from spanscore.runs.diff.samples import compared_runs as compared_runs
from spanscore.runs.diff.samples import pairing as pairing
from spanscore.runs.diff.verdicts import Compared as Compared
from spanscore.runs.diff.verdicts import Measure as Measure
from spanscore.runs.diff.verdicts import Settings as Settings
from spanscore.runs.diff.verdicts import Verdict as Verdict
from spanscore.runs.diff.verdicts import compared as compared
from spanscore.runs.diff.verdicts import overall as overall
