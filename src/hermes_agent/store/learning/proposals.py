"""Table of proposals: learned changes that wait for the owner's approval or in quarantine."""

from __future__ import annotations

from enum import StrEnum

from hermes_agent.core.dataclass import dataclass
from hermes_agent.store.transaction import Columns, One, Tables, Transaction, Write, marks, storable
from hermes_agent.store.versions import Kind

NEW = "why, kind, item, action, call, key, job, session, principal, first, last, evidence, taint, base, at, expires"
FIELDS = f"{NEW}, state, ended, version"
PUT = (
    f"INSERT INTO learning_proposal (home, {NEW}, state) VALUES ($home, {marks(16, 1)}, 'waiting') "
    "ON CONFLICT (home, key) DO NOTHING RETURNING id"
)
CHANGE = "UPDATE learning_proposal"
BY_KEY = "SELECT id FROM learning_proposal WHERE home = $home AND key = $1"
GET = f"SELECT id, {FIELDS} FROM learning_proposal WHERE home = $home AND id = $1"
WAITING = (
    f"SELECT id, {FIELDS} FROM learning_proposal WHERE home = $home AND ended IS NULL AND (CAST($1 AS TEXT) = '' OR "
    "why = $1) "
    "ORDER BY id"
)
REJECTED = (
    f"SELECT id, {FIELDS} FROM learning_proposal WHERE home = $home AND state = 'rejected' AND kind = $1 AND item = $2"
)
END = (
    "UPDATE learning_proposal SET state = $2, ended = $3, version = $4 WHERE home = $home AND id = $1 AND ended IS NULL"
)
INTEND = (
    "UPDATE learning_proposal SET state = 'intended' WHERE home = $home AND id = $1 AND ended IS NULL AND state = "
    "'waiting'"
)
EXPIRE = (
    "UPDATE learning_proposal SET state = 'expired', ended = $1 WHERE home = $home AND ended IS NULL AND expires <= $1 "
    "AND state = 'waiting'"
)


class Why(StrEnum):
    """Why a change became a proposal: the owner wants to be `asked`, its target is `protected` (a person wrote or
    pinned it), it comes from a `member`'s conversation, or from `outside` text (quarantine)."""

    ASKED = "asked"
    PROTECTED = "protected"
    MEMBER = "member"
    OUTSIDE = "outside"


PART = ".waits."
"""In the key of a proposal that is one of several: what they are parts of, this, and the place among them."""


class ProposalState(StrEnum):
    """State of a proposal: `intended` while it is being applied; `approved` by the owner, `released` by a later
    conversation that came to the same by itself."""

    WAITING = "waiting"
    INTENDED = "intended"
    APPROVED = "approved"
    RELEASED = "released"
    REJECTED = "rejected"
    EXPIRED = "expired"
    RETRACTED = "retracted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A change that waits. `call` is the tool call as JSON (`{"name", "arguments"}`), `base` the file that it was
    made for (None: no file, or several), `evidence` JSON (see `learning.drafts.Evidence`), `taint` names its
    parts of outside origin; `version` is the ledger version that it became."""

    why: Why
    kind: Kind
    item: str
    action: str
    call: str
    key: str
    job: str
    session: str
    principal: str
    first: int
    last: int
    evidence: str
    taint: str
    at: float
    expires: float
    base: bytes | None = None
    id: int = 0
    state: ProposalState = ProposalState.WAITING
    ended: float | None = None
    version: int | None = None

    @property
    def name(self) -> str:
        """Its name for people."""
        return f"p{self.id}"

    @property
    def whole(self) -> str:
        """Key of the group that it belongs to: proposals of one group only make sense together."""
        return self.key.partition(PART)[0]


proposal_of = Columns(Proposal, f"id, {FIELDS}")
new_of = Columns(Proposal, NEW)


class Proposals(Tables):
    """Table of proposals: a row is ended at most once, and not deleted."""

    get = One[[int], Proposal](GET, proposal_of)
    """The proposal of that number."""
    intend = Write[[int]](INTEND)
    """Reserve a proposal for applying; 0 where it was ended or is reserved."""
    wait_on = Write[[int]](f"{CHANGE} SET state = 'waiting' WHERE home = $home AND id = $1 AND state = 'intended'")
    """Return a proposal that could not be applied to waiting."""
    expire = Write[[float]](EXPIRE)
    """End the proposals that are overdue at that time; their number."""

    async def put(self, tx: Transaction, proposal: Proposal) -> int:
        """Add a proposal; its number, or that of an earlier one with the same key."""
        row = await tx.row(PUT, *new_of.of(proposal))
        row = row or await tx.row(BY_KEY, proposal.key)
        assert row is not None
        return int(row[0])

    async def waiting(self, why: Why | None = None) -> list[Proposal]:
        """The open proposals, the oldest first."""
        return [
            proposal_of(row) for row in await self._engine.read(lambda tx: tx.rows(WAITING, why.value if why else ""))
        ]

    async def rejected(self, kind: Kind, item: str) -> list[Proposal]:
        """The proposals for an item that the owner rejected."""
        rows = await self._engine.read(lambda tx: tx.rows(REJECTED, kind.value, storable(item)))
        return [proposal_of(row) for row in rows]

    async def end(
        self, tx: Transaction, number: int, state: ProposalState, at: float, version: int | None = None
    ) -> bool:
        """End it; False where it was ended before."""
        return await tx.run(END, number, state.value, at, version) > 0
