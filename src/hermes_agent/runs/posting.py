"""Posts replies, questions and warnings of a run to the outbox, in the commit of their event."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes_agent.agent.journal import JoinedChanges
from hermes_agent.agent.mailbox import Change, Mailbox
from hermes_agent.agent.session import Session as View
from hermes_agent.agent.stop import NEW_MESSAGE, WITHDRAWN
from hermes_agent.core.chat import Button, Content, Conversation, Letter
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Answered, Asked, Entry, Notice, Outcome, RunEnded
from hermes_agent.core.quick_replies import replies_to
from hermes_agent.store.outbox import Outbox
from hermes_agent.store.sessions import Session

SILENT = frozenset({"[SILENT]", "NO_REPLY"})
"""A reply that is one of these is not delivered: the model was told that it need not speak."""
HOW_TO_ANSWER = "`/approve [once|session|always]` or `/deny [why]`"
NOT_ANSWERED = "(Nobody answered.)"
LABELS = {"once": "Once", "session": "This session", "always": "Always", "rule": "By rule", "deny": "No"}
Surface = Callable[[str], bool]


def own_conversation(record: Session) -> tuple[Conversation, ...]:
    """The default for `told_to`: a session posts to its own conversation."""
    return (Conversation.parse(record.conversation),)


def reply_key(session: str, run: str) -> str:
    """The key of the slot for a run's draft and reply."""
    return f"{session}:{run}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """Builds the outbox changes of a run. `delivers` tells which surfaces use the outbox, `here` those that this
    process delivers itself, so that nobody has to be woken; `told_to` gives the conversations that a session
    posts to."""

    outbox: Outbox
    delivers: Surface
    here: Surface
    told_to: Callable[[Session], tuple[Conversation, ...]] = own_conversation

    def of(self, record: Session, mailbox: Mailbox, view: View) -> JoinedChanges | None:
        """The changes to add to the commits of a run of this session; None where there are none. A question that is
        still open when its run ends loses its buttons."""
        told = [each for each in self.told_to(record) if self.delivers(each.platform)]
        if not told:
            return None
        open_ = set(view.asked - view.answers.keys())  # Also what an interrupted run had asked.

        def joined(entries: Sequence[Entry]) -> Sequence[Change]:
            open_.update(view.asked - view.answers.keys())
            changes = [
                change for entry in entries for to in told if (change := self._change(record, to, entry, mailbox))
            ]
            if any(isinstance(entry.event, RunEnded) for entry in entries):
                left = sorted(open_ - view.answers.keys())
                changes += [self._answered(record, to, each, NOT_ANSWERED) for each in left for to in told]
                open_.clear()
            return changes

        return joined

    def _change(self, record: Session, to: Conversation, entry: Entry, mailbox: Mailbox) -> Change | None:
        if isinstance(entry.event, Answered):
            return self._answered(record, to, entry.event.question, f"→ {entry.event.answer}")
        said = said_by(record.id, entry)
        if said is None:
            return None
        key, inbox = key_in(record, to, said[0]), mailbox.last_taken if to.key == record.conversation else 0
        letter = Letter(key=key, to=to, content=said[1], session=record.id, inbox=inbox)
        return lambda tx: self.outbox.put(tx, letter, at=entry.at, wake=not self.here(to.platform))

    def _answered(self, record: Session, to: Conversation, question: str, answer: str) -> Change:
        """What became of a question, in its place."""
        key = key_in(record, to, f"{record.id}:{question}")
        return lambda tx: self.outbox.answered(tx, key, answer, wake=not self.here(to.platform))


def key_in(record: Session, to: Conversation, key: str) -> str:
    """The key of a slot in one of several conversations."""
    return key if to.key == record.conversation else f"{key}@{to.key}"


def said_by(session: str, entry: Entry) -> tuple[str, Content] | None:
    """The key and content of the message for an event; None where it has none."""
    match entry.event:
        case RunEnded() as ended:
            text = _ending(ended)
            if ended.reason == WITHDRAWN:  # What was shown of a reply goes away.
                return reply_key(session, entry.run), Content(text="")
            return (reply_key(session, entry.run), Content(text=text)) if text else None
        case Asked() as asked:
            return f"{session}:{asked.question}", asking(asked)
        case Notice(level="news" | "warning" | "error", question=question) as notice if question:
            return f"{session}:{question}", offering(notice)
        case Notice(level="news" | "warning" | "error", text=text):
            return f"{session}:{entry.run}:{entry.number}", Content(text=text)
        case _:
            return None


def asking(asked: Asked) -> Content:
    """A question with buttons, and instructions for surfaces without buttons."""
    buttons = tuple(Button(label=LABELS.get(choice, choice), value=choice) for choice in asked.choices)
    how = f"\n\n{HOW_TO_ANSWER}" if asked.purpose == "approval" else ""
    if asked.purpose == "clarify" and asked.choices:
        how = "".join(f"\n{number}. {choice}" for number, choice in enumerate(asked.choices, 1))
    return Content(text=f"{asked.text}{how}", buttons=buttons, question=asked.question)


def offering(notice: Notice) -> Content:
    """A question that no run waits for, with a button for each quick reply."""
    words = [each.word for each in replies_to(notice.question)]
    buttons = tuple(Button(label=word.capitalize(), value=word) for word in words)
    return Content(text=f"{notice.text} {' / '.join(words)}?", buttons=buttons, question=notice.question)


def _ending(ended: RunEnded) -> str:
    if ended.outcome is Outcome.STOPPED and ended.reason == NEW_MESSAGE:
        return "Interrupted by your new message."
    if ended.outcome is Outcome.ANSWERED and ended.text.strip() in SILENT:
        return ""
    return ended.text or "(The reply is empty.)"
