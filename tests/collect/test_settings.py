from __future__ import annotations

from spanscore.collect.settings import TraceSettings

MIB = 1024 * 1024


def test_where_nothing_is_configured() -> None:
    """A receiver waits two seconds for late children and half a minute for a root, and bounds what it holds."""
    assert TraceSettings() == TraceSettings(
        decision_delay_s=2,
        trace_timeout_s=30,
        max_trace_age_s=15 * 60,
        num_traces=50_000,
        span_limit=10_000,
        max_trace_bytes=16 * MIB,
        max_bytes=256 * MIB,
        late_spans="rescore",
        pause_wait_s=24 * 60 * 60,
        pause_bytes=64 * MIB,
        remember_traces=1_000_000,
        keep_closed_s=60,
        keep_closed_spans=20_000,
        max_revisions=5,
        revision_delay_s=2,
    )
