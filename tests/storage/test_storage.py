from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from spanscore.storage.directory import Directory, StorageError
from spanscore.storage.records import FILE_HEADER_SIZE, FileHeader, Kind, file_header
from spanscore.storage.settings import StorageSettings
from spanscore.storage.syncer import Synced
from storage.disks import FailingDisk, MemoryDisk
from storage.storing import DEADLINE_S, Kept, kept, names, request, sizes, trace_id

SMALL = StorageSettings(max_size=2**20, sync_interval_s=0)
IMPATIENT = StorageSettings(max_size=2**20, sync_interval_s=0, compact_after_s=0)
SEGMENT = SMALL.segment_size


def test_what_was_not_scored_is_there_after_a_kill() -> None:
    """Requests come back in their order, as far as their traces are open."""
    disk = MemoryDisk()
    with kept(disk) as before:
        before.put(1, 2)
        before.put(3)
        before.put(2)
        before.close(2, 3)
        killed = disk.after_kill()
    with kept(killed) as after:
        assert [(1,)] == after.restored
        after.put(1)
        again = killed.after_kill()
    with kept(again) as last:
        assert [(1,), (1,)] == last.restored


def test_an_end_keeps_what_is_open_and_no_other_request() -> None:
    """Without open traces, only the ids of closed ones are left."""
    disk = MemoryDisk()
    with kept(disk) as before:
        before.put(1)
        before.put(2)
        before.close(1)
    assert 1 == len(names(disk, ".requests"))
    with kept(disk) as after:
        assert [(2,)] == after.restored
        after.close(2)
    assert [] == names(disk, ".requests")


def test_closed_traces_are_remembered_after_a_crash_and_after_an_end() -> None:
    """Late spans and repeated requests may come after both, also after several restarts."""
    disk = MemoryDisk()
    with kept(disk) as before:
        before.put(1)
        before.close(1)
        killed = disk.after_kill()
    assert [1] == remembered(killed) == remembered(disk)
    with kept(disk) as second:
        second.storage.look_after()
    with kept(disk) as third:
        third.put(2)
        third.close(2)
        killed = disk.after_kill()
    assert [1, 2] == remembered(killed) == remembered(disk)


@pytest.mark.parametrize("remember", [1, 5_000])
def test_as_many_closed_traces_are_known_after_a_restart_as_are_remembered(remember: int) -> None:
    """Also where a trace has several records, as it was scored before it was sent, or its spans come again."""
    disk = MemoryDisk()
    last = 12_000
    with kept(disk, StorageSettings(remember=remember, sync_interval_s=0)) as storing:
        for number in range(last):
            storing.storage.score_trace(trace_id(number))
            storing.close(number)
            storing.storage.close_trace(trace_id(0), sequence=0)
            if not number % 1_000:
                storing.storage.look_after()
        storing.storage.look_after()
    known = set(remembered(disk))
    assert set(range(last - remember, last)) <= known
    assert len(known) < remember + 5_000


def test_records_of_closed_traces_are_bounded() -> None:
    """However often spans of one closed trace come again, its records take an eighth of the room at most."""
    disk = MemoryDisk()
    with kept(disk, SMALL) as storing:
        for _ in range(10_000):
            storing.storage.close_trace(trace_id(1), sequence=0)
        storing.storage.look_after()
        assert storing.storage.size <= SMALL.max_size // 7


def test_pauses_do_not_hold_up_the_ids_of_many_closed_traces() -> None:
    """The requests of a pause keep the ids of traces that are closed later; with too many, the pause is given up."""
    with kept(MemoryDisk(), StorageSettings(remember=1_000, sync_interval_s=0)) as storing:
        storing.put(0)
        storing.storage.score_trace(trace_id(0))
        let_go = []
        for number in range(1, 6_000):
            storing.put(number)
            storing.close(number)
            if not number % 500:
                storing.storage.look_after()
                let_go.append(storing.storage.let_go_of_pauses(trace_id(0).__eq__))
        assert ([False] * 6, True, [False]) == (let_go[:6], any(let_go[6:]), let_go[-1:])
        assert 1 == storing.storage.pauses_given_up
        assert [trace_id(0)] != list(storing.storage.requests.kept)


def remembered(disk: MemoryDisk) -> list[int]:
    """Return the closed traces that a start finds."""
    storage = Kept(disk.after_kill()).storage
    try:
        return [int.from_bytes(each.trace_id, "big") for each in storage.earlier.closed_traces()]
    finally:
        storage.end(DEADLINE_S)


def test_a_note_of_an_end_that_an_earlier_version_left_is_deleted() -> None:
    """It said that closed traces need not be remembered; they are."""
    disk = MemoryDisk()
    with kept(disk) as before:
        before.put(1)
        before.close(1)
        killed = disk.after_kill()
    killed.write(f"{1:016x}.ended", b"")
    assert [1] == remembered(killed)
    with kept(killed):
        assert [] == names(killed, ".ended")


def test_a_trace_that_is_sent_again_after_an_end_is_kept() -> None:
    """What was closed before does not hide what came after."""
    disk = MemoryDisk()
    with kept(disk) as before:
        before.put(1, 2)
        before.close(1)
    with kept(disk) as after:
        assert [(2,)] == after.restored
        after.put(1)
        killed = disk.after_kill()
    with kept(killed) as last:
        assert [(2,), (1,)] == last.restored


def test_the_time_without_a_process_does_not_count() -> None:
    """A request is as old as it was when the last one came, whatever the clocks say now."""
    disk = MemoryDisk()
    with kept(disk) as before:
        before.put(1)
        before.put(1)
        killed = disk.after_kill()
    with kept(killed) as after:
        first, second = after.ages_s
        assert (0.0, True) == (second, 0 < first < DEADLINE_S)
        after.put(1)
        again = killed.after_kill()
    with kept(again) as last:
        assert (0.0, 3, True) == (last.ages_s[2], len(last.ages_s), last.ages_s[0] >= first)


def test_segments_go_with_their_last_trace() -> None:
    """What is stored stays bounded while traces are closed, however much comes."""
    disk = MemoryDisk()
    with kept(disk, SMALL) as storing:
        for number in range(2_000):
            assert storing.put(number)
            storing.close(number)
            storing.storage.look_after()
        assert storing.storage.size < SMALL.max_size
    assert 2_000 * len(request(1)) > SMALL.max_size
    assert [] == names(disk, ".requests")


def test_a_long_trace_does_not_hold_the_others() -> None:
    """Where most of a segment is not needed, it is written anew with what is, and comes back after a kill."""
    disk = MemoryDisk()
    with kept(disk, IMPATIENT) as storing:
        storing.put(0, 1)
        for number in range(2, 900):
            storing.put(number)
        before = sizes(disk)[names(disk, ".requests")[0]]
        storing.close(*range(1, 900))
        storing.put(900)
        storing.put(0, 901)
        storing.close(900)
        while storing.compact():
            pass
        after = sizes(disk)[names(disk, ".requests")[0]]
        assert (SEGMENT // 2 < before, after) == (True, FILE_HEADER_SIZE + 44 + len(request(0)))
        killed = disk.after_kill()
    with kept(killed, SMALL) as found:
        assert [(0,), (0, 901)] == found.restored


def test_a_trace_that_is_closed_while_its_segment_is_written_anew_is_gone() -> None:
    """What was decided meanwhile counts."""
    disk = MemoryDisk()
    with kept(disk, IMPATIENT) as storing:
        storing.put(0)
        for number in range(1, 900):
            storing.put(number)
        storing.close(*range(1, 900))
        job = storing.storage.compaction(lambda _: True)
        assert job is not None
        result = job.run(lambda kind, body, ids: body)
        storing.close(0)
        storing.storage.compacted(job.segment, result)
    assert ([], []) == (names(disk, ".requests"), names(disk, ".new"))


def test_when_it_is_full_requests_are_refused_until_there_is_room() -> None:
    """A refused request is not there after a kill; when traces are closed, requests are taken again."""
    disk = MemoryDisk()
    with kept(disk, SMALL) as storing:
        taken = [number for number in range(2_000) if storing.put(number)]
        assert 0.9 * SMALL.max_size < storing.storage.size <= SMALL.max_size
        assert ("the storage is full", 2_000 - len(taken)) == (
            storing.storage.trouble,
            storing.storage.refused.total(),
        )
        with kept(disk.after_kill(), SMALL) as killed:
            assert [(number,) for number in taken] == killed.restored
        storing.close(*taken)
        storing.storage.look_after()
        assert ("", True) == (storing.storage.trouble, storing.put(9_999))


def test_the_heaviest_open_traces_give_way() -> None:
    """Where room is short, those that keep the most are to be closed, and small ones stay, however many are older."""
    disk = MemoryDisk()
    with kept(disk, SMALL) as storing:
        for number in range(1, 41):
            storing.put(number)
        heavy = [number for number in range(100, 120) if storing.put(*[number] * 50)]
        assert (True, True) == (len(heavy) >= 14, storing.storage.is_short)
        gone = [int.from_bytes(found, "big") for found in storing.storage.make_room()]
        assert (heavy[: len(gone)], []) == (gone, storing.storage.make_room())
        storing.close(*gone)
        while storing.compact():
            pass
        assert (False, True) == (storing.storage.is_short, storing.put(1))
        killed = disk.after_kill()
    with kept(killed, SMALL) as found:
        there = {trace for traces in found.restored for trace in traces}
        assert {*range(1, 41), *heavy[len(gone) :]} == there


def test_a_trace_is_charged_for_its_own_spans() -> None:
    """One large span beside many small ones of others in its request is what gives way, and not the others."""
    disk = MemoryDisk()
    with kept(disk, SMALL) as storing:
        for number in range(100, 108):
            place = storing.storage.append(Kind.PROTOBUF, bytes(100_000))
            sizes = {trace_id(number): 50_000, **{trace_id(small): 1 for small in range(50)}}
            storing.storage.requests.hold(place, sizes, 50_050)
        assert [trace_id(number) for number in range(100, 104)] == storing.storage.make_room()


def test_small_requests_are_taken_where_large_ones_are_refused() -> None:
    """Of the last quarter a request may take half of what is left, so that who sends much does not take it all."""
    disk = MemoryDisk()
    with kept(disk, SMALL) as storing:
        while storing.put(1, *range(100, 200)):
            pass
        assert (True, True) == (storing.storage.is_short, storing.put(2))


def test_writing_anew_never_makes_it_longer() -> None:
    """A request that would be longer without what is not needed stays as it is."""
    disk = MemoryDisk()
    with kept(disk, IMPATIENT) as storing:
        for number in range(900):
            storing.put(number)
        storing.close(*range(1, 900))
        before = storing.storage.size
        job = storing.storage.compaction(lambda _: True)
        assert job is not None
        storing.storage.compacted(job.segment, job.run(lambda kind, body, ids: body * 100))
        assert before >= storing.storage.size


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EFBIG])
@pytest.mark.parametrize("method", ["create", "append", "truncate", "sync", "sync_names", "delete", "rename"])
def test_no_fault_loses_what_was_acknowledged(method: str, error: int) -> None:
    """Wherever an operation fails, once or from then on for a while, nothing that was acknowledged is lost."""
    for first in range(1, 9):
        for last in (first, first + 3):
            disk = MemoryDisk()
            failing = FailingDisk(disk, lambda name, call: error if name == method and first <= call <= last else None)  # noqa: B023 - used in this round only
            with kept(failing, IMPATIENT) as storing:
                acknowledged = [number for number in range(80) if storing.put_safely(number)]
                closed = [number for number in acknowledged if number % 5]
                storing.close(*closed)
                storing.storage.look_after()
                while storing.compact_if_possible():
                    pass
                failing.fault = lambda name, call: None
                storing.storage.look_after()
                assert ("", True) == (storing.storage.trouble, storing.put_safely(99))
                killed = disk.after_power_loss(random.Random(first))
            with kept(killed, SMALL) as found:
                there = {trace for traces in found.restored for trace in traces}
                assert set(acknowledged) - set(closed) | {99} <= there


def test_a_file_that_cannot_be_synced_is_left_and_its_requests_move() -> None:
    """The sync is not tried again; open requests are written to another file, which is synced."""
    disk = MemoryDisk()
    failing = FailingDisk(disk, lambda name, call: errno.EIO if (name, call) == ("sync", 2) else None)
    with kept(failing) as storing:
        assert (True, False, True) == (storing.put_safely(1), storing.put_safely(2), storing.put_safely(3))
        assert (1, 2) == (storing.storage.sync_failures, len(names(disk, ".requests")))
        assert (True, True) == (storing.compact(), storing.put_safely(4))
        for seed in range(50):
            with kept(disk.after_power_loss(random.Random(seed))) as found:
                assert {1, 2, 3, 4} == {trace for traces in found.restored for trace in traces}


def test_a_closed_trace_is_written_down_later_where_the_disk_is_full() -> None:
    """The receiver scores on; what could not be written is, as soon as there is room."""
    disk = MemoryDisk()
    failing = FailingDisk(disk, lambda name, call: None)
    with kept(failing) as storing:
        storing.put(1, 2)
        failing.fault = lambda name, call: errno.ENOSPC if name in {"create", "append"} else None
        storing.close(1)
        failing.fault = lambda name, call: None
        storing.storage.look_after()
        killed = disk.after_kill()
    with kept(killed) as found:
        assert [(2,)] == found.restored


def test_damage_costs_the_record_and_is_counted() -> None:
    """What comes before and behind a damaged record is there."""
    disk = MemoryDisk()
    with kept(disk) as before:
        for number in (1, 2, 3):
            before.put(number)
        killed = disk.after_kill()
    (name,) = names(killed, ".requests")
    killed.flip(name, killed.size(name) // 2)
    with kept(killed) as found:
        assert ([(1,), (3,)], 1) == (found.restored, found.storage.lost)


def test_damage_in_other_files_is_counted() -> None:
    """Ids of closed traces, turns and notes of conversations: each damaged place counts as one lost record at least."""
    disk = MemoryDisk()
    with kept(disk) as before:
        before.put(1)
        before.close(1)
        before.storage.turns.add(b"turn" * 20, tuple, 0)
        before.storage.turns.finish(bytes(16), [trace_id(1)])
        killed = [disk.after_kill() for _ in range(3)]
    for ending, damaged in zip((".closed", ".turns", ".finished"), killed, strict=True):
        (name,) = names(damaged, ending)
        damaged.flip(name, damaged.size(name) - 1)
        with kept(damaged) as found:
            read = [*found.storage.earlier.turns(), *found.storage.earlier.finished_conversations()]
            assert (1, 2 if ending == ".closed" else 1) == (found.storage.lost, len(read))


@pytest.mark.parametrize("file", ["0000000000000001.closed", "0000000000000000.monitors"])
def test_a_file_that_cannot_be_opened_is_counted(file: str, caplog: pytest.LogCaptureFixture) -> None:
    """It is left alone, as its owner may mend it, counts as a record, and is told of once."""
    disk = MemoryDisk()
    disk.write(file, file_header(FileHeader(1)))

    def fault(name: str, _call: int) -> None:
        if name == "read":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    with kept(FailingDisk(disk, fault)) as found:
        assert (None, 1) == (found.storage.monitors.read(), found.storage.lost)
    assert file in disk.names()
    assert 1 == caplog.text.count("cannot be read: permission denied")


def test_damage_that_is_found_while_a_file_is_written_anew_is_counted() -> None:
    """The request is in no file any more."""
    disk = MemoryDisk()
    with kept(disk, IMPATIENT) as storing:
        for number in range(1, 200):
            storing.put(number)
        storing.close(*range(3, 200))
        name = names(disk, ".requests")[0]
        disk.flip(name, FILE_HEADER_SIZE + 60)
        assert (True, 1) == (storing.compact(), storing.storage.lost)


@pytest.mark.parametrize("left", [0, 10_000])
def test_a_segment_that_was_cut_at_the_front_costs_what_is_not_there(left: int) -> None:
    """Requests that are lost and those that are found are all that were kept, also where a whole segment is lost."""
    disk = MemoryDisk()
    with kept(disk, SMALL) as before:
        for number in range(150):
            before.put(number)
        killed = disk.after_kill()
    name = names(killed, ".requests")[0]
    content = killed.read(name, 0, SEGMENT * 2)
    killed.write(name, content[-left:] if left else content[:FILE_HEADER_SIZE].replace(b"S", b"s") + b"?")
    with kept(killed, SMALL) as found:
        assert (150, left > 0) == (len(found.restored) + found.storage.lost, found.restored[0][0] < 61)


@pytest.mark.parametrize("content", [b"", b"\x89SPN", file_header(FileHeader(1))], ids=["empty", "short", "header"])
def test_files_without_requests_do_no_harm(content: bytes) -> None:
    """What a crash leaves that early is deleted, and counts as nothing lost."""
    disk = MemoryDisk()
    disk.write("0000000000000001.requests", content)
    disk.write("0000000000000001.closed", content)
    with kept(disk) as found:
        assert ([], 0, True) == (found.restored, found.storage.lost, found.put(1))
    with kept(disk) as again:
        assert [(1,)] == again.restored


def test_strange_files_are_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    """What is not ours is named and not touched; what a rewriting left behind is deleted."""
    disk = MemoryDisk()
    disk.write("notes.txt", b"mine")
    disk.write("ffffffffffffffff.requests", b"mine")  # no file could come after it
    disk.write("0000000000000007.requests.new", b"half")
    with kept(disk):
        pass

    assert {"notes.txt": 4, "ffffffffffffffff.requests": 4} == sizes(disk)
    told = "storage.directory: left alone, as it is not ours: 'ffffffffffffffff.requests', 'notes.txt'"
    assert [told] == caplog.messages


def test_another_version_is_refused_and_nothing_is_changed() -> None:
    """A newer spanscore's files are not guessed at, and not deleted."""
    disk = MemoryDisk()
    with kept(disk) as before:
        before.put(1)
        before.put(2)
        killed = disk.after_kill()
    (name,) = names(killed, ".requests")
    killed.write(name, with_version(killed.read(name, 0, 10_000), 9))
    expected = sizes(killed)
    with pytest.raises(StorageError, match=rf"^storage.directory: '{name}' is of format version 9, where this .* 1: "):
        Kept(killed)
    assert expected == sizes(killed)


def with_version(content: bytes, version: int) -> bytes:
    """Return a file with another version in its header."""
    from zlib import crc32  # noqa: PLC0415 - to make a header that is right but for its version

    header = bytearray(content[: FILE_HEADER_SIZE - 4])
    header[8] = version
    return bytes(header) + crc32(header).to_bytes(4, "little") + content[FILE_HEADER_SIZE:]


def test_a_file_that_cannot_be_read_costs_itself_only() -> None:
    """A disk that fails when it is read does not keep the process from starting."""
    disk = MemoryDisk()
    with kept(disk) as before:
        before.put(1)
        killed = disk.after_kill()
    failing = FailingDisk(killed, lambda name, call: errno.EIO if name == "read" else None)
    with kept(failing) as found:
        assert ([], 1, True) == (found.restored, found.storage.lost, found.put_safely(2))


@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
@pytest.mark.parametrize("end", [".requests", ".closed"])
def test_a_file_of_the_log_that_is_none_is_refused(tmp_path: Path, kind: str, end: str) -> None:
    """Nothing is read through a link, nobody waits for a pipe, and the start fails with the reason."""
    (tmp_path / "elsewhere").write_bytes(b"secret")
    path = tmp_path / "states" / f"{1:016x}{end}"
    path.parent.mkdir()
    make = {
        "link": lambda: path.symlink_to(tmp_path / "elsewhere"),
        "pipe": lambda: os.mkfifo(path),
        "directory": path.mkdir,
    }
    make[kind]()
    directory = Directory(path.parent)
    with pytest.raises(StorageError, match=rf"^storage.directory: '{path.name}' is a link, or no file: .*; remove it$"):
        Kept(directory)
    directory.unlock()


@pytest.mark.parametrize("what", ["directory", "files"])
def test_what_somebody_removed_is_counted_and_the_next_is_kept(tmp_path: Path, what: str) -> None:
    """Nothing is acknowledged that is not in a file with a name; what was needed counts as lost."""
    states = tmp_path / "states"
    directory = Directory(states)
    with kept(directory) as storing:
        assert all(storing.put_safely(number) for number in (1, 2, 3))
        storing.close(3)
        for path in [*states.glob("*.*")]:
            path.unlink()
        if what == "directory":
            shutil.rmtree(states)
        size = storing.storage.size
        assert (False, True) == (storing.put(4), bool(storing.storage.trouble))
        storing.storage.look_after()
        assert ("", 3, True) == (storing.storage.trouble, storing.storage.lost, storing.storage.size < size)
        assert (True, 0) == (storing.put_safely(5), storing.storage.refused["full"])
        storing.storage.look_after()
        assert 3 == storing.storage.lost
    directory.unlock()
    directory = Directory(states)
    with kept(directory) as found:
        assert [(5,)] == found.restored
    directory.unlock()


def test_without_a_place_for_it_everything_is_refused(tmp_path: Path) -> None:
    """Until its parent is there again, each request is, and the trouble says where and what to do."""
    states = tmp_path / "parent" / "states"
    directory = Directory(states)
    with kept(directory) as storing:
        storing.put_safely(1)
        states.parent.rename(tmp_path / "elsewhere")  # an open file in it does not help
        storing.storage.look_after()
        storing.storage.look_after()
        why = "no such file or directory; make it again, or restart spanscore"
        expected = f"storage.directory: cannot use '{states}': {why}"
        assert (expected, False, 1) == (storing.storage.trouble, storing.put(2), storing.storage.refused["ENOENT"])
        states.parent.mkdir()
        storing.storage.look_after()
        assert ("", 1, True) == (storing.storage.trouble, storing.storage.lost, storing.put_safely(2))
    directory.unlock()


def test_senders_that_wait_share_a_sync() -> None:
    """What is written while the disk syncs is synced in one round."""
    disk = MemoryDisk()
    with kept(disk, StorageSettings(sync_interval_s=0.05)) as storing:
        for number in range(100):
            storing.put(number)
        result = storing.wait_for(100)
        assert (Synced(100), True) == (result, len(storing.rounds) <= 3)


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    """Check that each storage ends its thread."""
    import threading  # noqa: PLC0415 - for this check only

    before = threading.active_count()
    yield
    assert threading.active_count() <= before + 1


def test_a_request_stays_until_all_of_it_is_taken() -> None:
    """Its file is kept and not written anew, and what closes meanwhile is closed without what is still to come."""
    disk = MemoryDisk()
    with kept(disk, IMPATIENT) as storing:
        place = storing.storage.append(Kind.PROTOBUF, request(*range(1, 500)))
        storing.storage.requests.hold(place, {}, 499, is_last=False)
        storing.storage.requests.hold(place, {trace_id(1): 1}, 499, is_last=False)
        storing.close(1)
        assert (False, 1) == (storing.compact(), len(names(disk, ".requests")))
        with kept(disk.after_kill(), IMPATIENT) as killed:
            assert [tuple(range(1, 500))] == killed.restored
        storing.storage.requests.hold(place, {trace_id(2): 1}, 499)
        storing.close(2)
    assert [] == names(disk, ".requests")


def test_a_trace_in_two_parts_of_a_request_keeps_it_once() -> None:
    """What both parts have of it counts, and the request is written anew with its spans."""
    disk = MemoryDisk()
    with kept(disk, IMPATIENT) as storing:
        place = storing.storage.append(Kind.PROTOBUF, request(1, *range(100, 500), 1))
        storing.open.add(1)
        for is_last in (False, True):
            storing.storage.requests.hold(place, {trace_id(1): 1}, 402, is_last=is_last)
        assert storing.compact()
        with kept(disk.after_kill(), IMPATIENT) as killed:
            assert [(1, 1)] == killed.restored


def test_a_file_that_is_removed_under_an_arriving_request_is_counted() -> None:
    """The request is lost to the next start, and so are its traces, before and behind the moment."""
    disk = MemoryDisk()
    with kept(disk) as storing:
        place = storing.storage.append(Kind.PROTOBUF, request(1, 2))
        storing.storage.requests.hold(place, {trace_id(1): 1}, 2, is_last=False)
        for name in names(disk, ".requests"):
            disk.delete(name)
        storing.storage.look_after()
        storing.storage.requests.hold(place, {trace_id(2): 1}, 2)
        assert (1, {trace_id(1), trace_id(2)}) == (storing.storage.lost, storing.storage.only_in_memory())
        assert storing.put(3)
        storing.close(1, 2)
        assert not storing.storage.only_in_memory()
