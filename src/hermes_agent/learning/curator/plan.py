"""The plan of a curator pass, saved before anything is changed, so that a killed pass can be resumed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from hermes_agent.host.files import PRIVATE_FOLDER, write_private
from hermes_agent.learning.curator.candidates import Rating
from hermes_agent.learning.curator.history import QueryHistory
from hermes_agent.skills.state import whole

PLAN, RUN, REPORT = "plan.json", "run.json", "REPORT.md"


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a skill's age: active, stale, archived."""

    name: str
    was: str
    now: str
    days: int


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One planned change.

    `unused` archives `name`; `patch` changes its files; `join` changes `name` (or creates it, where `base` is
    empty) to cover the skills that it `absorbs` (name to hash), and archives those. `base` is the hash that
    `name` must still have; `protected` steps change what a person wrote or pinned, and become proposals.
    """

    number: int
    kind: Literal["unused", "patch", "join"]
    name: str
    base: str = ""
    changes: dict[str, bytes] = {}
    runs: tuple[str, ...] = ()
    absorbs: dict[str, str] = {}
    why: str = ""
    protected: bool = False

    @property
    def gone(self) -> tuple[str, ...]:
        """The skills that it archives."""
        return (self.name,) if self.kind == "unused" else tuple(self.absorbs)

    @property
    def touched(self) -> tuple[str, ...]:
        """Every skill that it changes."""
        return (self.name,) if self.kind == "unused" else (self.name, *self.absorbs)

    def came(self, state: State, reason: str = "", waits: Iterable[str] = (), diff: str = "") -> Changed:
        """Its outcome."""
        absorbs = tuple(self.absorbs)
        return Changed(
            kind=self.kind,
            name=self.name,
            absorbs=absorbs,
            state=state,
            reason=reason,
            why=self.why,
            waits=tuple(waits),
            diff=diff,
        )


State = Literal["done", "skipped", "waits", "back", "would"]


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of one step. `why` is the model's reason for the person; `versions` are those of the ledger, `diff`
    their difference."""

    kind: str
    name: str
    absorbs: tuple[str, ...] = ()
    state: State = "skipped"
    reason: str = ""
    why: str = ""
    waits: tuple[str, ...] = ()
    versions: tuple[int, ...] = ()
    diff: str = ""


class Denied(msgspec.Struct, frozen=True, kw_only=True):
    """A refused tool call of the curator's model, with the reason."""

    call: str
    reason: str


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a curator pass. `past` are the queries that found their skill when the plan was made; a pass that
    `looks` changes nothing. `considered` are the overlaps that reviews reported, `seen` those of them that were
    confirmed. `failed` says why the model's part ended early; `said` are its last words, which nothing relies on."""

    job: str
    at: float
    looks: bool
    moves: tuple[Move, ...] = ()
    past: tuple[QueryHistory, ...] = ()
    steps: tuple[Step, ...] = ()
    ratings: dict[str, Rating] = {}
    groups: tuple[tuple[str, ...], ...] = ()
    considered: tuple[tuple[str, ...], ...] = ()
    seen: tuple[tuple[str, ...], ...] = ()
    denied: tuple[Denied, ...] = ()
    model: str = ""
    failed: str = ""
    said: str = ""


def keep(plan: Plan, folder: Path) -> None:
    """Save the plan of a pass. Blocks."""
    folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    write_private(folder / PLAN, msgspec.json.encode(plan))


def kept(folder: Path) -> Plan | None:
    """The saved plan; None where it is missing or incomplete. Blocks."""
    return whole(folder / PLAN, Plan)
