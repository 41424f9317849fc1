"""Slash commands for approvals: /approve, /deny, /approvals and /yolo."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from hermes_agent.app.commands.command import Desk, Done, command
from hermes_agent.app.operations.access import say_verb
from hermes_agent.app.operations.approvals import ALLOWED
from hermes_agent.core.answers import answer_in, open_in, reason_in
from hermes_agent.core.chat import Conversation, Standing
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Asked
from hermes_agent.store.sessions import Session

WORDS = ("once", "session", "always", "rule")


@command("approve", "Approve the call in question.", arguments="[once|session|always|rule]", while_running=True)
async def approve(desk: Desk, rest: str) -> Done:
    """Approve the call that the run asks about."""
    asked = await _open_here(desk)
    word = answer_in(asked, rest or "yes") or ""
    if word not in WORDS:
        raise HermesError(f"Say for how long: {', '.join(WORDS)}.")
    return Done(submit=replace(desk.message(word), answers=asked.question))


@command("deny", "Deny the call in question.", arguments="[why]", while_running=True)
async def deny(desk: Desk, rest: str) -> Done:
    """Deny the call that the run asks about; the rest of the line is the reason."""
    asked = await _open_here(desk)
    return Done(submit=replace(desk.message(reason_in(asked, rest)), answers=asked.question))


@command("yolo", "No questions in this run, or the next one.", arguments="[off]", while_running=True)
async def yolo(desk: Desk, rest: str) -> Done:
    """Turn approval questions off for a run of this person. Hard blocks and the deny list still apply."""
    if desk.inbound.principal.standing is Standing.GUEST:
        raise HermesError("Guests cannot turn questions off.")
    unasked = desk.runtime.unasked
    if rest.lower() == "off":
        unasked.take_back(desk.record.id)
        return Done(text="I will ask again before dangerous calls.")
    unasked.say(desk.record.id, desk.inbound.principal.key, running=desk.busy)
    which = "this run" if desk.busy else "your next run"
    return Done(text=f"No questions in {which}. The hard block and the deny list hold. `/yolo off` ends this.")


@command(
    "approvals",
    "List open approvals in all your sessions, answer them, or revoke one for good.",
    arguments="[list|revoke ID|ID once/session/always/rule/deny [why]]",
    while_running=True,
)
async def approvals(desk: Desk, rest: str) -> Done:
    """List open approvals in all sessions of this person, or answer one; or list and revoke those for good."""
    if ALLOWED.has(rest.partition(" ")[0]):
        return Done(text=await say_verb(ALLOWED, desk.access, rest.split()))
    found = {name_of(asked): (record, asked) for record, asked in await _open(desk)}
    name, _, word = rest.partition(" ")
    if not name:
        lines = [f"{name}  {_report(record, asked)}" for name, (record, asked) in found.items()]
        how = "Answer with `/approvals ID once` (or session, always, rule, deny WHY)."
        return Done(text="\n\n".join((*lines, how)) if lines else "No approval is open.")
    if name not in found:
        raise HermesError(f"No open approval is called {name}. See `/approvals`.")
    record, asked = found[name]
    answer = answer_in(asked, word)
    if answer is None:
        raise HermesError(f"Say what you decide: `/approvals {name} once`, session, always, or deny and why.")
    message = replace(
        desk.message(answer),
        source_id=f"answer:{asked.question}",
        conversation=Conversation.parse(record.conversation),
        answers=asked.question,
    )
    await desk.hermes.submit(message, record.id)
    return Done(text=f"{answer}: {_report(record, asked)}")


def name_of(asked: Asked) -> str:
    """Short stable id of a question, the same in every process."""
    return hashlib.sha256(asked.question.encode()).hexdigest()[:6]


def _report(record: Session, asked: Asked) -> str:
    return f"{record.title or record.id}: {asked.text}"


async def _open(desk: Desk) -> list[tuple[Session, Asked]]:
    """Open approvals that this person may answer; in a group, only those asked in that group."""
    principal = desk.inbound.principal
    if principal.standing is Standing.GUEST:
        raise HermesError("Guests cannot approve calls. The owner has been asked.")
    whose = None if principal.standing is Standing.OWNER else principal.key
    records = await desk.hermes.store.sessions.list(whose, busy=True)
    here = desk.inbound.conversation
    if not here.is_private:  # Others read along.
        records = [each for each in records if Conversation.parse(each.conversation).place == here.place]
    found = [(record, await _asked(desk, record.id)) for record in records]
    return [(record, asked) for record, asked in found if asked is not None]


async def _asked(desk: Desk, session: str) -> Asked | None:
    """The latest open approval of a session."""
    pages = desk.hermes.store.history.since_last_end(session)
    found = open_in([entry async for page in pages for entry in page])
    return next((each.asked for each in reversed(found) if each.asked.purpose == "approval"), None)


async def _open_here(desk: Desk) -> Asked:
    """The approval that is open in this session. Raises `HermesError` if there is none."""
    asked = await _asked(desk, desk.record.id)
    if asked is None:
        raise HermesError("No approval is open here. `/approvals` lists those of your other sessions.")
    return asked
