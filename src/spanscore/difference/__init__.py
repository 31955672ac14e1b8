"""Two versions of an agent compared: whether the new one is better or worse, and what it does otherwise."""

from spanscore.difference.behaviour import Change as Change
from spanscore.difference.behaviour import changes as changes
from spanscore.difference.samples import Pairing as Pairing
from spanscore.difference.samples import pairing as pairing
from spanscore.difference.verdicts import Compared as Compared
from spanscore.difference.verdicts import Measure as Measure
from spanscore.difference.verdicts import Settings as Settings
from spanscore.difference.verdicts import Verdict as Verdict
from spanscore.difference.verdicts import compared as compared
from spanscore.difference.verdicts import overall as overall
