"""Quick replies: the words that answer a question under a reply. No run waits for such a question."""

from __future__ import annotations

import re

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Answered, Entry, MessageTaken, Notice, RunEnded

LESSON, FOLDER, GOAL = "learn:", "trust:", "goal:"
"""Begin the ids of questions about a proposal (then its name), a folder (then the hash of what was shown) and the proof
of a goal (then its id and the hash of the command)."""
NUMBERED = re.compile(r"^[ \t]*\d+[.)]", re.MULTILINE)
AT_THE_END = 300
"""Characters at the end of a reply in which a question mark makes it a question to the person."""
SHORT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickReply:
    """A word that answers such a question, and the letter that stands for it."""

    word: str
    key: str


KEEP, LATER, NEVER = (
    QuickReply(word="keep", key="k"),
    QuickReply(word="not now", key="n"),
    QuickReply(word="never", key="v"),
)
TRUST, ONCE, NO = (
    QuickReply(word="trust", key="t"),
    QuickReply(word="this time", key="o"),
    QuickReply(word="no", key="n"),
)
COUNT = QuickReply(word="count it", key="c")


def replies_to(question: str) -> tuple[QuickReply, ...]:
    """The quick replies to the question of that id."""
    if question.startswith(LESSON):
        return (KEEP, LATER, NEVER)
    if question.startswith(GOAL):
        return (COUNT, LATER)
    return (TRUST, ONCE, NO) if question.startswith(FOLDER) else ()


def reply_in(question: str, said: str, *, brief: bool) -> QuickReply | None:
    """The quick reply that a line is; None for an ordinary message. `brief`: letters, numbers and `no` count too."""
    word = " ".join(said.casefold().split()).rstrip(".!")
    for number, each in enumerate(replies_to(question), 1):
        if (word == each.word and len(word) > SHORT) or (brief and word in (each.word, each.key, str(number))):
            return each
    return None


def with_keys(notice: Notice) -> str:
    """The question for a terminal: each quick reply with its letter."""
    return f"{notice.text} {' / '.join(f'{each.word} ({each.key})' for each in replies_to(notice.question))}?"


def may_answer(said: str) -> bool:
    """Whether a line is a quick reply to any question."""
    return any(reply_in(question, said, brief=True) for question in (LESSON, FOLDER, GOAL))


def open_questions(entries: list[Entry]) -> tuple[list[str], bool]:
    """The questions at the end of a log that words may still answer: those since the person's last message. Also
    whether `brief` words may: not where the reply itself asks something."""
    questions: list[str] = []
    reply = ""
    for entry in entries:
        match entry.event:
            case MessageTaken(inbox=inbox, message=message) if inbox and not message.is_by_runtime:
                questions.clear()
            case RunEnded(text=text):
                reply = text
            case Notice(question=question) if question:
                questions.append(question)
            case Answered(question=question) if question in questions:
                questions.remove(question)
            case _:
                pass
    return questions, "?" not in reply[-AT_THE_END:] and not NUMBERED.search(reply)
