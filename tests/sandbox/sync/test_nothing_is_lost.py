"""Whatever becomes of the folder elsewhere, no file here is lost: random edits on both sides, and everything that may
happen to the other one at any moment."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.sandbox.sync.sides import FETCH, MARKER, SCAN, SEND, THEIRS
from tests.sandbox.sync.local_shell import QuickShell, Sides, files

NAMES = ("a", "b", "c", "d", "src/e", "src/f", "src/deep/g", "out/h", "out/i")
EDITS = st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), max_size=5)
MOMENTS = st.sampled_from(("before", "in the command", "sending", "fetching", "listing"))
SCRIPTS = {"sending": SEND, "fetching": FETCH, "listing": SCAN}
Edits: TypeAlias = list[tuple[str, bool]]
"""Each a name, and whether it is written or deleted."""


class Killed(BaseException):
    """Hermes was."""


def emptied(there: Path) -> None:
    vanished(there)
    there.mkdir()


def vanished(there: Path) -> None:
    shutil.rmtree(there, ignore_errors=True)


def swapped(there: Path) -> None:
    emptied(there)
    (there / "a").write_text("of another project")
    (there / MARKER).write_text("another")


def copied(there: Path) -> None:
    """As a backup is put back: with the marker, shorter than it was."""
    if not there.exists():
        return
    copy = there.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(there, copy)
    for name in NAMES[::2]:
        (copy / name).unlink(missing_ok=True)
    vanished(there)
    copy.rename(there)


def killed(there: Path) -> None:
    raise Killed


def broken(there: Path) -> None:
    raise PlaceFailed("The connection broke.")


FAULTS = (emptied, vanished, swapped, copied, killed, broken)


class TwoSides(RuleBasedStateMachine):
    """`ours` is what must be here. Of a command whose end was not seen, what it wrote (`unseen`) may come later, where
    nobody wrote that file here since (`newer`)."""

    edits = 0

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="sides-"))
        self.shell = QuickShell()
        self.sides = Sides(self.folder, shell=self.shell)
        self.runner = asyncio.Runner()
        self.count = 0
        self.ours: dict[str, str] = {}
        self.unseen: dict[str, set[str]] = {}
        self.newer: set[str] = set()

    def teardown(self) -> None:
        self.runner.close()
        shutil.rmtree(self.folder)

    @rule(edits=EDITS)
    def edit_here(self, edits: Edits) -> None:
        done = self._edit(self.sides.here, edits)
        self.newer = {name for name in self.newer | done.keys() if done.get(name, "still")}
        self.ours = {name: text for name, text in (self.ours | done).items() if text}

    @rule(edits=EDITS, cuts=st.booleans())
    def edit_there(self, edits: Edits, cuts: bool) -> None:
        """Somebody else does, between two commands: that never comes here, but where the end of one was not seen."""
        if self.sides.there.exists():
            done = self._edit(self.sides.there, edits + [(name, False) for name in NAMES[1::2] if cuts])
            self._may_come(done if self.runner.run(self.sides.sync.begun()) else {})

    @rule(edits=EDITS, meanwhile=EDITS)
    def command(self, edits: Edits, meanwhile: Edits) -> None:
        """One that nothing happens to finds what is here, and what it did comes."""
        done: dict[str, str] = {}

        def act() -> None:
            now = files(self.sides.there)
            self._is_here(files(self.sides.here))  # what an earlier one did may have come
            for name, text in self.ours.items():
                assert text.startswith("there") or now[name] == text
            edited = self._edit(self.sides.there, edits)
            done.update({name: text for name, text in edited.items() if text or name in now})
            self.edit_here(meanwhile)

        _, deletion = self.runner.run(self.sides.command(act))
        untouched = set(done) - {name for name, _ in meanwhile}
        now = files(self.sides.here)
        for name in untouched - set(deletion.paths if deletion else ()):
            assert now.get(name, "") == done[name]
        for name in set(done) - untouched:
            assert not done[name] or done[name] in (now.get(name), now.get(f"{THEIRS}/{name}"))
        written = {name for name, writes in dict(meanwhile).items() if writes}
        self._is_here(now, {name: text for name, text in done.items() if name not in written})

    @rule(edits=EDITS, fault=st.sampled_from(FAULTS), moment=MOMENTS, count=st.integers(0, 4))
    def command_and_fault(self, edits: Edits, fault: Callable[[Path], None], moment: str, count: int) -> None:
        """What it did may have come, or may later; nothing else is different."""
        there, done, left = self.sides.there, dict[str, str](), [count]

        def meddle(script: str) -> None:
            left[0] -= script == SCRIPTS.get(moment)
            if left[0] < 0:
                left[0] = 100
                fault(there)

        def act() -> None:
            done.update(self._edit(there, edits) if there.exists() else {})
            if moment == "in the command":
                fault(there)

        self.shell.meddle = meddle
        self._try(act, lambda: fault(there) if moment == "before" else None)
        self.shell.meddle = lambda script: None
        self._is_here(files(self.sides.here), done)

    @rule(edits=EDITS)
    def command_whose_files_cannot_be_read(self, edits: Edits) -> None:
        done: dict[str, str] = {}
        self.shell.unreadable = NAMES[::2]
        self._try(lambda: done.update(self._edit(self.sides.there, edits)))
        self.shell.unreadable = ()
        self._is_here(files(self.sides.here), done)

    @rule(edits=EDITS, count=st.integers(0, 6))
    def command_and_cut_transfer(self, edits: Edits, count: int) -> None:
        """Only so many files of an archive arrive, and half of one more."""
        done: dict[str, str] = {}
        self.shell.cut = count
        self._try(lambda: done.update(self._edit(self.sides.there, edits)))
        self.shell.cut = None
        self._is_here(files(self.sides.here), done)

    def _try(self, act: Callable[[], None], before: Callable[[], None] = lambda: None) -> None:
        try:
            before()
            self.runner.run(self.sides.command(act))
        except (PlaceFailed, Killed):
            self.sides.again()

    def _is_here(self, now: dict[str, str], done: Mapping[str, str] = MappingProxyType({})) -> None:
        """Each file is as it was here, or as a command there left it."""
        now = {name: text for name, text in now.items() if not name.startswith(THEIRS)}
        for name in self.ours.keys() | now.keys():
            came = {
                *(self.unseen.get(name, ()) if name not in self.newer else ()),
                *([done[name]] if name in done else ()),
            }
            assert now.get(name, "") in {self.ours.get(name, ""), *came}, name
        self.ours = now
        self._may_come(done)

    def _may_come(self, done: Mapping[str, str]) -> None:
        for name, text in done.items():
            self.unseen.setdefault(name, set()).update({text} - {""})
            self.newer.discard(name)

    def _edit(self, side: Path, edits: Edits) -> dict[str, str]:
        done = {}
        for name, writes in edits:
            self.count += 1
            TwoSides.edits += 1
            done[name] = f"{side.name} {self.count}" + "x" * (self.count % 3) if writes else ""
            (side / name).unlink(missing_ok=True)
            if writes:
                (side / name).parent.mkdir(parents=True, exist_ok=True)
                (side / name).write_text(done[name])
        return done


@pytest.mark.parametrize(
    ("examples", "least"), [(12, 100), pytest.param(80, 1000, marks=[pytest.mark.slow, pytest.mark.timeout(300)])]
)
def test_edits_on_both_sides_and_all_that_happens_elsewhere_lose_no_file_here(examples: int, least: int) -> None:
    TwoSides.edits = 0
    run_state_machine_as_test(
        TwoSides,
        settings=settings(
            max_examples=examples,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate,),  # to make a failure shorter takes longer than a test may
        ),
    )

    assert TwoSides.edits >= least
