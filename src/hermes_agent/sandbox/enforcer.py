"""Watchdog process that ends commands at their limits; it outlives its starter and needs only Python.

Each input line gives one command: its deadline on the machine's monotonic clock (or `inf`), the folder of its record
in hexadecimal, and the most processes, megabytes of memory, and megabytes in the folders of its session that it may
have (0: any number). All processes of a command carry that folder in their environment. At the end of input its
starter is gone; the watchdog exits once no such command runs.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Collection
from contextlib import suppress
from signal import SIGKILL, SIGTERM

PROC = "/proc"
MARK = b"HERMES_EXEC="  # as in wrapper.py
SESSIONS = b".sessions"  # as in backends/local.py
GRACE, LAST_RESORT = 0.8, 1.7
"""Seconds after which a command that was asked to end is ended, and after which nobody tries any more."""
GLANCE = 0.05
LOOK, WATCH = 1.0, 0.25
"""Seconds between two looks whether commands still run whose starter is gone, and how large commands are."""
RARELY = 50.0
"""How many times as long as a look at the folders of a session took passes before the next one."""
PAGE = os.sysconf("SC_PAGE_SIZE")


def serve() -> None:
    """Enforce the limits until the input has ended and every command with it."""
    due: dict[bytes, float] = {}
    most: dict[bytes, tuple[int, int, int]] = {}
    looks: dict[bytes, tuple[float, float]] = {}
    rest: bytes | None = b""
    while rest is not None or due:
        nearest = min(due.values(), default=float("inf")) - time.monotonic()
        pause = max(0.0, min(nearest, WATCH if most else LOOK if rest is None else nearest))
        if rest is None:
            due = {record: at for record, at in due.items() if runs(record) and family({record}, set())}
            time.sleep(pause if due else 0.0)
        elif select.select([0], [], [], None if pause == float("inf") else pause)[0]:
            rest = take(rest, due, most)
        end({record for record in most if is_too_large(record, most[record])}, at_once=True)
        end(overfull(most, looks), at_once=True)
        over = {record for record, at in due.items() if at <= time.monotonic()}
        end({record for record in over if runs(record)})
        # What a command left behind is watched for what is its own; the folders are, with the session's next command.
        most = {each: had for each, had in most.items() if runs(each) or (any(had[:2]) and family({each}, set()))}
        # What a session holds when its next command begins is where that one begins from.
        looks = {group: looks[group] for group in {each.rpartition(b"/")[0] for each in most} & looks.keys()}
        due = {record: at for record, at in due.items() if record not in over and (at < float("inf") or record in most)}


def take(rest: bytes, due: dict[bytes, float], most: dict[bytes, tuple[int, int, int]]) -> bytes | None:
    """Parse the commands of complete lines into `due` and `most`; the incomplete rest, None at the end of the input."""
    chunk = os.read(0, 1 << 16)
    *lines, rest = (rest + chunk).split(b"\n")
    for line in lines:
        at, record, *limits = line.decode().split()
        due[bytes.fromhex(record)] = float(at)
        if any(numbers := tuple(map(int, limits))):
            most[bytes.fromhex(record)] = numbers[0], numbers[1], numbers[2]
    return rest if chunk else None


def is_too_large(record: bytes, most: tuple[int, int, int]) -> bool:
    """Whether a command has more processes or memory than it may; its output says so then."""
    found, used = family({record}, set()) if any(most[:2]) else set(), 0
    for pid in found if most[1] else ():
        with suppress(OSError):
            _, resident, shared, *_ = read(f"{PROC}/{pid}/statm").split()
            used += (int(resident) - int(shared)) * PAGE
    for what, number, limit in (("processes", len(found), most[0]), ("megabytes of memory", used >> 20, most[1])):
        if limit and number > limit:
            say(record, f"it had {number} {what}, and may have {limit}.")
            return True
    return False


def say(record: bytes, why: str) -> None:
    """Write into a command's output why it is ended."""
    with suppress(OSError):
        handle = os.open(record + b"/out", os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
        os.write(handle, f"\nEnded: {why}\n".encode())
        os.close(handle)


def overfull(most: dict[bytes, tuple[int, int, int]], looks: dict[bytes, tuple[float, float]]) -> set[bytes]:
    """The commands of sessions whose folders hold more than they may, and more than at the last look: who deletes goes
    on. Their outputs say so. `looks` has the size of each and when to look again."""
    groups = {record: record.rpartition(b"/")[0] for record, limits in most.items() if limits[2]}
    held = {group: grown(group, looks) for group in set(groups.values())}
    over = {record for record, group in groups.items() if held[group] > most[record][2] << 20 and runs(record)}
    for record in over:
        megabytes = f"{held[groups[record]] >> 20} megabytes, and may hold {most[record][2]}"
        say(record, f"/tmp and ~ of its session hold {megabytes} (`terminal.session_mb`). Delete what is not needed.")
    return over


def grown(group: bytes, looks: dict[bytes, tuple[float, float]]) -> int:
    """Bytes in the folders of a session, where they are more than at the last look; else, or before its time, 0."""
    folder, _, name = group.rpartition(b"/")
    begun, (before, at) = time.monotonic(), looks.get(group, (float("inf"), 0.0))
    if begun < at:
        return 0
    held = size(b"%s/%s/%s" % (folder, SESSIONS, name))
    looks[group] = held, begun + RARELY * (time.monotonic() - begun)
    return held if held > before else 0


def size(folder: bytes) -> int:
    """Bytes that a tree takes on the disk; a file with several names counts once."""
    total, folders = 0, [folder]
    while folders:
        for entry in entries(folders.pop()):
            with suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                total += found.st_blocks * 512 // max(1, found.st_nlink)
                folders += [entry.path] if entry.is_dir(follow_symlinks=False) else []
    return total


def entries(folder: bytes) -> list[os.DirEntry[bytes]]:
    """What is in a folder; nothing where it is gone or closed."""
    with suppress(OSError), os.scandir(folder) as found:
        return list(found)
    return []


def runs(record: bytes) -> bool:
    """Whether no end is recorded yet; what a command left running after its end is not ended."""
    with suppress(OSError):
        return os.stat(record + b"/exit").st_size < 2  # noqa: PTH116 - a name may be no text
    return os.path.isdir(record)  # noqa: PTH112 - as above


def end(records: set[bytes], *, at_once: bool = False) -> None:
    """End these commands with everything that they started, `at_once` without asking them first. Their end is
    recorded first, for whoever sees them end; a shell that still can overwrites it with its own code."""
    for record in records:
        with suppress(OSError):
            handle = os.open(record + b"/exit", os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            os.write(handle, b"137\n")
            os.close(handle)
    begun, asked = time.monotonic(), False
    sessions: set[int] = set()
    while records and (found := family(records, sessions)) and (passed := time.monotonic() - begun) < LAST_RESORT:
        if at_once:
            signal_all(found, SIGKILL)
        elif not asked:
            signal_all(found, SIGTERM)
            asked = True
        elif passed > GRACE:
            signal_all(found, SIGKILL)
        time.sleep(GLANCE)


def signal_all(pids: Collection[int], number: int) -> None:
    """Send a signal to each process that still exists."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def family(records: Collection[bytes], known: set[int]) -> set[int]:
    """The live processes with one of the records in their environment, their descendants, and the sessions that they
    lead; adds them to `known`."""
    if not os.path.isdir(PROC):  # noqa: PTH112 - as above
        return groups(records)
    parents: dict[int, int] = {}
    sessions: dict[int, int] = {}
    found: set[int] = set()
    marks = {MARK + record for record in records}
    for pid in (int(name) for name in os.listdir(PROC) if name.isdecimal()):  # noqa: PTH208 - many names, no paths
        with suppress(OSError):
            state, parent, _, session, *_ = read(f"{PROC}/{pid}/stat").rpartition(b") ")[2].split()
            if state in (b"Z", b"X"):
                continue
            parents[pid], sessions[pid] = int(parent), int(session)
            if not marks.isdisjoint(read(f"{PROC}/{pid}/environ").split(b"\0")):
                found.add(pid)
    while True:
        known |= {pid for pid in found if sessions[pid] == pid}
        more = {pid for pid in parents if parents[pid] in found or sessions[pid] in known} - found
        if not more:
            return found
        found |= more


def groups(records: Collection[bytes]) -> set[int]:
    """The remaining process groups of these commands as negative numbers, for systems without /proc."""
    found = set()
    for record in records:
        with suppress(OSError, ValueError, IndexError):
            group = -int(read(os.fsdecode(record) + "/pid").split()[0])
            os.kill(group, 0)
            found.add(group)
    return found


def read(path: str) -> bytes:
    """A small file."""
    with open(path, "rb") as file:  # noqa: PTH123 - as above
        return file.read()


if __name__ == "__main__":
    serve()
