"""One file per instrumentation dialect; the name is the file name. What holds for all of them is named here."""

from spanscore.dialects._control_flow import state_of_result as state_of_result
from spanscore.dialects._control_flow import with_control_flow as with_control_flow
