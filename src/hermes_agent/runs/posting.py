"""What runs say through the outbox: their replies, questions and warnings, in the commit that makes them so."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes_agent.agent.journal import JoinedChanges
from hermes_agent.agent.mailbox import Change, Mailbox
from hermes_agent.agent.session import Session as View
from hermes_agent.agent.stop import NEW_MESSAGE, WITHDRAWN
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Answered, Asked, Entry, Notice, Outcome, RunEnded
from hermes_agent.core.inbound import Conversation
from hermes_agent.core.outbound import Button, Content, Letter
from hermes_agent.store.outbox import Outbox
from hermes_agent.store.sessions import Session

SILENT = frozenset({"[SILENT]", "NO_REPLY"})
"""A reply that is one of these is not delivered: the model was told that it need not speak."""
HOW_TO_ANSWER = "`/approve [once|session|always]` or `/deny [why]`"
NOT_ANSWERED = "(Nobody answered.)"
LABELS = {"once": "Once", "session": "This session", "always": "Always", "deny": "No"}
Surface = Callable[[str], bool]


def reply_key(session: str, run: str) -> str:
    """The key of the slot in which a run shows its draft and its reply."""
    return f"{session}:{run}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """`delivers` tells the surfaces whose sessions are spoken to through the outbox, `here` those that this process
    delivers itself, so that nobody has to be woken."""

    outbox: Outbox
    delivers: Surface
    here: Surface

    def of(self, record: Session, mailbox: Mailbox, view: View) -> JoinedChanges | None:
        """What belongs into the commits of a run of this session; None where nothing does. A question that nobody has
        answered when its run ends loses its buttons."""
        if not self.delivers(record.surface):
            return None
        to, wake = Conversation.parse(record.conversation), not self.here(record.surface)
        open_ = set(view.asked - view.answers.keys())  # Also what an interrupted run had asked.

        def joined(entries: Sequence[Entry]) -> Sequence[Change]:
            open_.update(view.asked - view.answers.keys())
            changes = [change for entry in entries if (change := self._change(record, to, entry, mailbox, wake=wake))]
            if any(isinstance(entry.event, RunEnded) for entry in entries):
                left = [f"{record.id}:{question}" for question in sorted(open_ - view.answers.keys())]
                changes += [self._answered(key, NOT_ANSWERED, wake=wake) for key in left]
                open_.clear()
            return changes

        return joined

    def _change(
        self, record: Session, to: Conversation, entry: Entry, mailbox: Mailbox, *, wake: bool
    ) -> Change | None:
        if isinstance(entry.event, Answered):
            return self._answered(f"{record.id}:{entry.event.question}", f"→ {entry.event.answer}", wake=wake)
        said = said_by(record.id, entry)
        if said is None:
            return None
        letter = Letter(key=said[0], to=to, content=said[1], session=record.id, inbox=mailbox.last_taken)
        return lambda tx: self.outbox.put(tx, letter, at=entry.at, wake=wake)

    def _answered(self, key: str, answer: str, *, wake: bool) -> Change:
        """What became of a question, in its place."""
        return lambda tx: self.outbox.answered(tx, key, answer, wake=wake)


def said_by(session: str, entry: Entry) -> tuple[str, Content] | None:
    """The key and content of what an event says to people; None where it says nothing."""
    match entry.event:
        case RunEnded() as ended:
            text = _ending(ended)
            if ended.reason == WITHDRAWN:  # What was shown of a reply goes away.
                return reply_key(session, entry.run), Content(text="")
            return (reply_key(session, entry.run), Content(text=text)) if text else None
        case Asked() as asked:
            return f"{session}:{asked.question}", asking(asked)
        case Notice(level="news" | "warning" | "error", text=text):
            return f"{session}:{entry.run}:{entry.number}", Content(text=text)
        case _:
            return None


def asking(asked: Asked) -> Content:
    """A question with its buttons, and in words for where there are none."""
    buttons = tuple(Button(label=LABELS.get(choice, choice), value=choice) for choice in asked.choices)
    how = f"\n\n{HOW_TO_ANSWER}" if asked.purpose == "approval" else ""
    if asked.purpose == "clarify" and asked.choices:
        how = "".join(f"\n{number}. {choice}" for number, choice in enumerate(asked.choices, 1))
    return Content(text=f"{asked.text}{how}", buttons=buttons, question=asked.question)


def _ending(ended: RunEnded) -> str:
    if ended.outcome is Outcome.STOPPED and ended.reason == NEW_MESSAGE:
        return "Interrupted by your new message."
    if ended.outcome is Outcome.ANSWERED and ended.text.strip() in SILENT:
        return ""
    return ended.text or "(The reply is empty.)"
