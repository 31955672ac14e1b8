"""The turns of conversations on disk, and which conversations are finished."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.conversations.turns import add, holding, labels, report, turn
from spanscore.model import FinishReason, session_key
from spanscore.scoring.conversations.held import Conversations
from spanscore.storage.directory import Directory
from spanscore.storage.id_log import FINISHED
from spanscore.storage.storage import Storage
from spanscore.storage.turn_log import TURNS, ids_of
from storage.disks import FailingDisk, MemoryDisk
from storage.storing import POWER

END = FinishReason.SHUTDOWN


class Stored:
    """Conversations with a journal on disk, as they are after a start."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.turns = storage.turns
        self.held: Conversations = holding()
        for note in storage.earlier.finished_conversations():
            self.held.restore_finished(*ids_of(note))
        for record in storage.earlier.turns():
            self.held.restore_turn(record, 0.0)
        self.held.journal = self

    def turn(self, record: bytes, needed: object, needed_size: int) -> None:
        """Write a turn."""
        self.turns.add(record, needed, needed_size)  # type: ignore[arg-type]

    def finished(self, key: bytes, trace_ids: Collection[bytes]) -> None:
        """Write the end of a conversation."""
        self.turns.finish(key, trace_ids)

    def finish(self) -> list[dict[str, str | None]]:
        """Finish all, as if the reports went out."""
        found = []
        for revision in self.held.finish(END):
            self.held.told(revision.conversation)
            found.append(labels(report(revision)))
        return found


@contextmanager
def started(path: Path) -> Iterator[Stored]:
    """Start on a directory, and end in order."""
    directory = Directory(path)
    storage = Storage(directory, POWER, lambda _: None)
    try:
        yield Stored(storage)
    finally:
        assert storage.end(5)
        directory.unlock()


TURN = st.tuples(st.integers(0, 8), st.sampled_from("ab"))
STEPS = st.lists(TURN | st.sampled_from(["finish", "killed", "killed while finishing"]), max_size=25)


@given(STEPS, st.sampled_from([0, 4_000, 2**20]))
def test_no_turn_is_counted_twice_and_none_is_lost(steps: list[tuple[int, str] | str], spare: int) -> None:
    """However often the process is killed, also between the end of a conversation and its report."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("spanscore.storage.turn_log._SPARE", spare)
        check_that_each_turn_is_counted_once(steps)


def check_that_each_turn_is_counted_once(steps: list[tuple[int, str] | str]) -> None:
    """Run a process, killed again and again, and another one to the end."""
    disk = MemoryDisk()
    storage = Storage(disk, POWER, lambda _: None)
    stored = Stored(storage)
    received: dict[int, str] = {}
    counted: Counter[bytes] = Counter()

    def finish() -> None:
        for revision in stored.held.finish(END):
            stored.held.told(revision.conversation)
            counted.update(revision.conversation.turns.keys())

    for step in [*steps, "killed"]:
        if isinstance(step, tuple):
            number, name = step
            add(stored.held, turn(number, of=received.setdefault(number, name)))
        elif step == "finish":
            finish()
        else:
            if step == "killed while finishing":
                list(stored.held.finish(END))
            left = disk.after_kill()
            storage.end(5)
            disk = left
            storage = Storage(disk, POWER, lambda _: None)
            stored = Stored(storage)
    finish()
    storage.end(5)

    assert {turn(number).trajectory.trace_id: 1 for number in received} == counted


def test_a_restart_goes_on(tmp_path: Path) -> None:
    """With the turns of before; what is finished stays so."""
    with started(tmp_path) as stored:
        add(stored.held, turn(1, "look", "refund", "tell"), turn(2, "look", of="other"))
    with started(tmp_path) as stored:
        assert 2 == stored.held.counts().open
        add(stored.held, turn(3, "refund"))
    with started(tmp_path) as stored:
        assert [2, 1] == sorted((len(each.turns) for each in stored.held._open.values()), reverse=True)
        assert {"once": "fail", "order": "pass", "told": "fail"} in stored.finish()
    with started(tmp_path) as stored:
        assert (0, 0) == (stored.held.counts().open, stored.held.counts().in_open)
        add(stored.held, turn(3, "refund"), turn(4, "refund", "tell"))
        counts = stored.held.counts()
        assert (1, 1) == (counts.late, counts.open)
        (revision,) = stored.held.finish(END)
        assert revision.conversation.continued
    with started(tmp_path) as stored:
        assert 1 == stored.held.counts().open
        assert stored.held._open[revision.conversation.key].continued


def test_failures_that_were_told(tmp_path: Path) -> None:
    """They are no news for the next process."""
    with started(tmp_path) as stored:
        (revision,) = add(stored.held, turn(1, "refund"))
        revision.conversation.failing = frozenset({"once"})
        add(stored.held, turn(2, "look"))
    with started(tmp_path) as stored:
        (held,) = stored.held._open.values()
        assert {"once"} == held.failing


def test_a_finished_one_without_a_report_is_still_open(tmp_path: Path) -> None:
    """Killed between the end and its report, the next process finishes it."""
    with started(tmp_path) as stored:
        add(stored.held, turn(1, "look"))
        list(stored.held.finish(END))
    with started(tmp_path) as stored:
        assert 1 == stored.held.counts().open


def test_revisions_of_turns(tmp_path: Path) -> None:
    """The newest counts, also of which conversation it is."""
    with started(tmp_path) as stored:
        add(stored.held, turn(1, "look"), turn(2, "refund"))
        add(stored.held, turn(1, "look", "look"), revision=1)
        add(stored.held, turn(2, "refund", of="other"), revision=1)
    with started(tmp_path) as stored:
        assert 2 == stored.held.counts().received
        assert [2, 2] == [each.number for each in stored.held.finish(END)]


def test_sessions_of_log_records(tmp_path: Path) -> None:
    """Their ids are longer."""
    key = session_key(bytes(15) + b"\1")
    with started(tmp_path) as stored:
        stored.held.add(key, turn(1, "look"), 0, 0.0)
        stored.finish()
    with started(tmp_path) as stored:
        stored.held.add(key, turn(1, "look"), 0, 0.0)
        assert 1 == stored.held.counts().late


def test_what_is_not_needed_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns of finished conversations, and the oldest notes."""
    monkeypatch.setattr("spanscore.storage.turn_log._SPARE", 10_000)
    sizes = []
    with started(tmp_path) as stored:
        add(stored.held, turn(100_000, "look", of="honest"))
        for number in range(400):
            add(stored.held, turn(number, "look", of=str(number)))
            if number % 4 == 3:
                honest = stored.held._open.pop(next(iter(stored.held._open)))
                stored.finish()
                stored.held._open[honest.key] = honest
            sizes.append(stored.turns.size)
    with started(tmp_path) as stored:
        assert 1 == stored.held.counts().open

    assert max(sizes) < 100_000
    assert 1 == len(list(tmp_path.glob(f"*{FINISHED}")))


def test_many_starts_leave_few_files(tmp_path: Path) -> None:
    """Each begins new ones."""
    for number in range(20):
        with started(tmp_path) as stored:
            add(stored.held, turn(number, "look"))
    with started(tmp_path) as stored:
        assert 20 == stored.held.counts().in_open
    assert len(list(tmp_path.glob(f"*{TURNS}"))) <= 10


@pytest.mark.parametrize("method", ["append", "create"])
@pytest.mark.parametrize("call", range(1, 8))
def test_a_disk_that_fails_once(method: str, call: int) -> None:
    """What it did not take is written with the next turn, or a little later."""
    disk = MemoryDisk()
    failing = FailingDisk(disk, lambda name, number: errno.EIO if (name, number) == (method, call) else None)
    storage = Storage(failing, POWER, lambda _: None)
    stored = Stored(storage)
    for number in range(6):
        add(stored.held, turn(number, "look"))
    storage.look_after()
    left = disk.after_kill()
    storage.end(5)
    storage = Storage(left, POWER, lambda _: None)

    assert 6 == Stored(storage).held.counts().in_open
    storage.end(5)


@pytest.mark.parametrize("restart", [False, True])
def test_files_that_somebody_removed(tmp_path: Path, *, restart: bool) -> None:
    """The turns in memory are written anew: at once if a turn was written before, else with the next one."""
    removed = []
    with started(tmp_path) as stored:
        add(stored.held, turn(1, "look"))
        if not restart:
            removed = remove_turns(tmp_path, stored)
    if restart:
        with started(tmp_path) as stored:
            removed = remove_turns(tmp_path, stored)
            assert 0 == stored.turns.size
            add(stored.held, turn(2, "look", of="other"))
    with started(tmp_path) as stored:
        assert (1, 1 + restart) == (len(removed), stored.held.counts().in_open)


def remove_turns(path: Path, stored: Stored) -> list[Path]:
    """Remove the files of turns, have that noticed, and return them."""
    removed = [*path.glob(f"*{TURNS}")]
    for each in removed:
        each.unlink()
    stored.storage.look_after()
    left = sum(each.stat().st_size for each in path.iterdir() if each.suffix in {TURNS, FINISHED})
    assert left == stored.turns.size
    return removed


def test_without_the_section_all_goes(tmp_path: Path) -> None:
    """Nothing reads it any more."""
    with started(tmp_path) as stored:
        add(stored.held, turn(1, "look"))
        stored.finish()
        add(stored.held, turn(2, "look"))
    with started(tmp_path) as stored:
        stored.turns.clear()
    assert [] == [each.name for each in tmp_path.iterdir() if each.suffix in {TURNS, FINISHED}]
