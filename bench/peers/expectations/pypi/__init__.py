"""The peers from PyPI: WHERE is the Python of an environment that has one of them.

google-adk[eval]    openevals    pydantic-evals    deepeval    mlflow
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from bench.peers.expectations.peer import Peer
from bench.peers.expectations.pypi import translated
from bench.peers.expectations.pypi.differences import DIFFERENCES, kind
from bench.peers.expectations.verdicts import Configuration


def _peer(name: str, translate: Callable[[Mapping[str, Any]], list[Configuration]], **more: Any) -> Peer:
    script = Path(__file__).with_name(f"ask_{name.replace('-', '_')}.py")
    return Peer(name, script, translate, translated.trajectory, DIFFERENCES[name], kind, **more)


def _is_f1(expectation: Mapping[str, Any]) -> bool:
    return expectation["kind"] == "TrajectoryMatch" and expectation["order"] != "exact"


def _is_a_share(expectation: Mapping[str, Any]) -> bool:
    return bool(expectation["metric"] == "ToolPermission")


PEERS: Final = (
    _peer("google-adk", translated.google_adk),
    _peer("openevals", translated.openevals),
    _peer("pydantic-evals", translated.pydantic_evals, is_of_one_scale=_is_f1),
    _peer("deepeval", translated.deepeval, is_of_one_scale=_is_a_share),
    _peer("mlflow", translated.mlflow),
)
