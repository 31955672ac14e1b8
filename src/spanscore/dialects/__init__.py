"""Dialects, which read single spans: a file for each instrumentation."""

from spanscore.dialects._content import has_objects as has_objects
from spanscore.dialects._content_of_events import as_attributes as as_attributes
from spanscore.dialects._control_flow import failure_in as failure_in
from spanscore.dialects._control_flow import state_of_result as state_of_result
from spanscore.dialects._control_flow import with_control_flow as with_control_flow
from spanscore.dialects._literals import parsed_text as parsed_text
