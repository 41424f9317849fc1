"""Transcript of the chat: turns session events into permanent lines and an unfinished part that still changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum, auto
from typing import Protocol

from hermes_agent.agent.stop import WITHDRAWN
from hermes_agent.cli.chat.blocks import Blocks, is_code
from hermes_agent.cli.chat.calls import Call, Folds, ended_lines, wished
from hermes_agent.cli.chat.pictures import Draw, picture_lines
from hermes_agent.cli.chat.text import (
    BOLD,
    CYAN,
    DIM,
    RED,
    YELLOW,
    clean,
    elapsed,
    hanging,
    marked,
    one_line,
    paint,
    wrapped,
)
from hermes_agent.cli.output import width
from hermes_agent.core.chat import UNREAD
from hermes_agent.core.clock import Clock
from hermes_agent.core.events import (
    Answered,
    Asked,
    Event,
    MessageTaken,
    Notice,
    Outcome,
    Replied,
    RunEnded,
    RunStarted,
    ToolEnded,
    ToolProgress,
    ToolStarted,
    TurnStarted,
)
from hermes_agent.core.messages import CallDelta, Continuing, Retrying, TextDelta, ThinkingDelta
from hermes_agent.core.quick_replies import replies_to, with_keys
from hermes_agent.core.shown import additions, words_of


class Words:
    """Splits the text of one streamed reply into Markdown blocks; each block is returned once."""

    def __init__(self) -> None:
        self._blocks = Blocks()
        self._given = ""

    @property
    def tail(self) -> str:
        """The text not returned yet."""
        return self._blocks.tail

    @property
    def given(self) -> bool:
        """Whether any block of this reply was returned."""
        return bool(self._given.strip())

    def add(self, text: str) -> list[str]:
        """Add streamed text. Returns the blocks it completes."""
        return self._give(self._blocks.feed(text))

    def finish(self, whole: str) -> tuple[list[str], bool]:
        """The remaining blocks of the whole reply, and whether they continue those returned before.

        False if streamed text was missed: then the blocks are those of the whole reply.
        """
        fits = whole.startswith(self._given)
        rest = Blocks()
        blocks = rest.feed(whole[len(self._given) if fits else 0 :])
        blocks += rest.close()
        self.forget()
        return blocks, fits

    def forget(self) -> None:
        """Reset for the next reply."""
        self._blocks = Blocks()
        self._given = ""

    def _give(self, blocks: list[str]) -> list[str]:
        self._given += "".join(blocks)
        return blocks


MOST_SAID_LINES = 12
SHORTEST_THOUGHT = 1.0
"""Seconds of thinking that are worth a word."""
MOST_WAITING_CHARACTERS = 1_000


class Page(Protocol):
    """Append-only text output of the chat.

    - `write` appends whole lines and does not change earlier ones;
    - `width` is the cells per line.
    """

    @property
    def width(self) -> int: ...

    def write(self, lines: str) -> None: ...


class Kind(Enum):
    """Kind of what the chat wrote last (message, text, call, remark); a blank line separates different kinds."""

    NOTHING = auto()
    SAID = auto()
    WORDS = auto()
    CALL = auto()
    REMARK = auto()


class Transcript:
    """The chat's view of one session: final lines go to a `Page`; what still changes is kept in attributes.

    Public attributes are the unfinished part: the reply being written, thoughts, running tool calls, queued messages,
    open questions.
    """

    def __init__(self, page: Page, clock: Clock, render: Callable[[str, int], str]) -> None:
        self.words = Words()
        self.thoughts = ""
        self.forming = ""
        self.calls: dict[str, Call] = {}
        self.waiting: dict[int, str] = {}
        self.withdrawn: set[str] = set()
        self.questions: dict[str, Asked] = {}
        self.running = False
        self.retrying = ""
        self.began = 0.0
        self.stopping = False
        self.show_thoughts = False
        self.draw: Draw | None = None
        self._page = page
        self._clock = clock
        self._render = render
        self._kind = Kind.NOTHING
        self._open_end = False
        self._thinking_since = 0.0
        self._last_reply = self.last_answer = ""
        self._taken: set[int] = set()
        self._wished: dict[str, Call] = {}
        self._folds = Folds()

    @property
    def width(self) -> int:
        """Cells per line."""
        return self._page.width

    def see(self, event: Event) -> None:
        """Apply an event."""
        match event:
            case TextDelta(text=text):
                self._end_thoughts()
                self.retrying = ""
                self._write_words(self.words.add(text))
            case ThinkingDelta(text=text):
                self._thinking_since = self._thinking_since or self._clock.monotonic()
                self.thoughts += text
                self.retrying = ""
            case CallDelta(name=name):
                self._end_thoughts()
                self.forming = name
            case ToolStarted() | ToolProgress() | ToolEnded():
                self._see_call(event)
            case Replied():
                self._see_reply(event)
            case _:
                self._see_rare(event)

    def _see_call(self, event: ToolStarted | ToolProgress | ToolEnded) -> None:
        match event:
            case ToolStarted(call_id=call_id, tool=tool, summary=summary, effect=effect):
                now, asked = self._clock.monotonic(), self._wished.get(call_id)
                content = asked.content if asked is not None else ""
                self.calls[call_id] = Call(tool=tool, summary=summary, effect=effect, began=now, content=content)
            case ToolProgress(call_id=call_id, text=text):
                if call_id in self.calls:
                    self.calls[call_id].progress = text
            case ToolEnded(call_id=call_id):
                running, now = self.calls.pop(call_id, None), self._clock.monotonic()
                call = running or self._wished.get(call_id)
                if running is not None and not event.seconds:  # A stop ended it, and nobody measured it.
                    event = replace(event, seconds=now - running.began)
                self._put(Kind.CALL, ended_lines(event, call, self._page.width))
                self._folds.add(event, call)
                if pictures := picture_lines(event.message, self.draw):
                    self._page.write("\n".join(pictures))

    def _see_reply(self, reply: Replied) -> None:
        self._end_thoughts()
        self.forming = self.retrying = ""
        blocks, fits = self.words.finish(reply.message.text)
        if not fits:
            self.remark("(Part of the reply had not arrived; this is the whole.)")
        self._write_words(blocks)
        self._open_end = False
        if reply.partial:
            self.remark("(cut short)")
        self._last_reply = reply.message.text
        self.expect(reply)

    def expect(self, reply: Replied) -> None:
        """Keep what calls a reply asks for: their starts may not be seen."""
        self._wished = {call.id: wished(call) for call in reply.message.tool_calls}

    def _see_rare(self, event: Event) -> None:
        match event:
            case TurnStarted():
                self._void()
            case RunStarted():
                self.began = self._clock.monotonic()
                self.running, self.stopping = True, False
                self._last_reply = ""
            case RunEnded():
                self._see_end(event)
            case MessageTaken(message=message, inbox=inbox) if inbox:
                self.waiting.pop(inbox, None)
                self._taken.add(inbox)
                self.said(words_of(message), additions(message))
                if self.draw is not None and (pictures := picture_lines(message, self.draw)):
                    self._page.write("\n".join(pictures))
            case Notice():
                self._see_notice(event)
            case Retrying() | Continuing():
                self._see_another_attempt(event)
            case Asked(question=question):
                self.questions[question] = event
            case Answered(question=question, answer=answer, inbox=inbox) if not replies_to(question):
                self.waiting.pop(inbox, None)
                self._taken.add(inbox)
                asked = self.questions.pop(question, None)
                said = one_line(answer, self._page.width // 2)
                room = max(8, self._page.width - width(said) - 5)
                words = f"{one_line(asked.text, room)} " if asked is not None else ""
                self._put(Kind.CALL, f"{paint('?', YELLOW)} {paint(f'{words}→ {said}', DIM)}")
            case _:
                pass

    def _see_notice(self, notice: Notice) -> None:
        if any(notice.text.endswith(f"{UNREAD}: {words}") for words in self.withdrawn):
            return  # The person took it back here, and has it in the input.
        colour = {"info": DIM, "news": DIM, "warning": YELLOW, "error": RED}[notice.level]
        self.remark(f"? {with_keys(notice)}" if notice.question else notice.text, YELLOW if notice.question else colour)

    def _see_another_attempt(self, event: Retrying | Continuing) -> None:
        self.retrying = f"{one_line(event.reason, 200)} · attempt {event.attempt + 1} in {elapsed(event.delay)}"
        if isinstance(event, Continuing):  # the words go on where they broke off: no line may come between them
            self._end_thoughts()
            return
        shown = self.retrying
        if self.words.given:
            self.remark("(The reply broke off. Ignore the text above: the model writes it again.)", YELLOW)
        self._void()
        self.retrying = shown
        self.remark(f"↻ {shown}", YELLOW)

    def _see_end(self, ended: RunEnded) -> None:
        waiting = dict(self.waiting)
        self.leave()
        self.waiting = waiting
        rest = ended.text.rpartition(self._last_reply)[2].strip() if self._last_reply else ended.text.strip()
        match ended.outcome:
            case Outcome.ANSWERED:
                self.last_answer = ended.text
                if not self._last_reply:
                    self.reply(ended.text)
            case Outcome.STOPPED if ended.reason == WITHDRAWN:
                pass  # The person took back all that it was to answer.
            case Outcome.STOPPED:
                self.remark(f"■ {rest or 'Stopped.'} `/continue` resumes the run.", YELLOW)
            case Outcome.LIMIT:
                how = "" if "`/continue`" in rest else " `/continue` resumes the run."
                self.remark(f"■ {rest}{how}", YELLOW)
            case Outcome.FAILED:
                self.remark(f"✗ {rest}", RED)

    def unfold(self) -> None:
        """Show the whole of the latest folded output; the next time, of the one before."""
        if lines := self._folds.next(self._page.width):
            self._put(Kind.WORDS, lines)
        else:
            self.remark("There is nothing more to unfold.")

    def leave(self) -> None:
        """Clear the open part; permanent lines stay."""
        self._void()
        self.calls.clear()
        self.waiting.clear()
        self.questions.clear()
        self.running = self.stopping = False

    def head(self, lines: str) -> None:
        """Show the greeting."""
        self._put(Kind.SAID, lines)

    def wait(self, inbox: int | None, text: str) -> None:
        """Add a submitted message that was not read yet."""
        if inbox is not None and inbox not in self._taken:
            self.waiting[inbox] = text[:MOST_WAITING_CHARACTERS]

    def said(self, text: str, added: Sequence[str] = ()) -> None:
        """Show a person's message, and labels for what was `added` to it."""
        self._put(Kind.SAID, f"{paint('>', BOLD, CYAN)} " + "\n  ".join(said_lines(text, added, self._page.width - 4)))

    def reply(self, text: str) -> None:
        """Show a whole reply."""
        self._write_words([text])
        self._open_end = False

    def remark(self, text: str, colour: str = DIM) -> None:
        """Show a line from the program."""
        columns = self._page.width
        lines = marked(text, columns) if colour == YELLOW else paint("\n".join(wrapped(text, columns)), colour)
        self._put(Kind.REMARK, lines)

    def answer(self, text: str) -> None:
        """Show a command's result."""
        self._put(Kind.WORDS, hanging(text, self._page.width))

    @property
    def gap(self) -> bool:
        """Whether a blank line separates the last output from the text being written."""
        return self._kind is not Kind.NOTHING and not (self._kind is Kind.WORDS and self._joins(self.words.tail))

    def _joins(self, block: str) -> bool:
        """Whether a block directly continues the previous one, as in the model's text; code stands alone."""
        return self._open_end and not block.startswith("\n") and not is_code(block)

    def _write_words(self, blocks: list[str]) -> None:
        for block in blocks:
            if block.strip():
                self._put(Kind.WORDS, self._render(block, self._page.width), tight=self._joins(block))
                self._open_end = not block.endswith("\n\n") and not is_code(block)

    def _end_thoughts(self) -> None:
        if self.thoughts.strip():
            lasted = self._clock.monotonic() - self._thinking_since
            seconds = f" for {elapsed(lasted)}" if lasted >= SHORTEST_THOUGHT else ""
            if self.show_thoughts:
                lines = clean(self.thoughts).strip()
                self._put(Kind.REMARK, paint(f"∴ {lines}", DIM))
            else:
                room = max(8, self._page.width - len(seconds) - 14)
                self._put(Kind.REMARK, paint(f"∴ thought{seconds} · {one_line(self.thoughts, room)}", DIM))
        self.thoughts = ""
        self._thinking_since = 0.0

    def _void(self) -> None:
        """Clear the unfinished reply."""
        self.words.forget()
        self.thoughts = self.forming = self.retrying = ""
        self._thinking_since = 0.0
        self._open_end = False

    def _put(self, kind: Kind, lines: str, *, tight: bool = False) -> None:
        together = kind is self._kind and (kind in (Kind.CALL, Kind.REMARK) or tight)
        if self._kind is not Kind.NOTHING and not together:
            lines = f"\n{lines}"
        self._kind = kind
        self._page.write(lines)


def said_lines(text: str, added: Sequence[str], columns: int) -> list[str]:
    """The lines of a person's message, long ones folded, and a label for each thing that was added."""
    lines = clean(text).strip("\n").split("\n")
    if (over := len(lines) - MOST_SAID_LINES) > 0:
        lines[MOST_SAID_LINES:] = [paint(f"… {over} more lines", DIM)]
    if added:
        lines = [*filter(None, lines), *(paint(f"+ {one_line(label, columns)}", DIM) for label in added)]
    return lines
