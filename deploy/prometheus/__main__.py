"""Writes the rules as the Prometheus operator takes them: `python deploy/prometheus`; `--check` only looks."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Final

RULES: Final = Path(__file__).parent / "rules.yaml"
WRAPPED: Final = Path(__file__).parent / "kubernetes" / "prometheusrule.yaml"

_HEAD: Final = """\
# Made from ../rules.yaml by `python deploy/prometheus`.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: spanscore
  labels: {app.kubernetes.io/name: spanscore}
spec:
"""


def main() -> int:
    """Write or check the file, and return the exit status."""
    _, groups, rest = RULES.read_text(encoding="utf-8").partition("groups:\n")
    text = _HEAD + textwrap.indent(groups + rest, "  ")
    if WRAPPED.exists() and WRAPPED.read_text(encoding="utf-8") == text:
        return 0
    print(WRAPPED.name)
    if "--check" in sys.argv[1:]:
        return 1
    WRAPPED.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
