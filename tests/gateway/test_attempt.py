"""One attempt to show a slot leaves behind what is certainly shown."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from hermes_agent.core.chat import Attachment, Content, Conversation, Piece, Slot, SlotState
from hermes_agent.gateway.channel import Abilities, NeverHere, NotNow, OutcomeUnknown, Part
from hermes_agent.gateway.channel_runtime import REPEAT, Attempt, ChannelRuntime, made
from hermes_agent.testing.channel import FakePlatform
from hermes_agent.testing.clock import FakeClock
from hermes_agent.testing.platform import Trouble

TO = Conversation(platform="fake", chat="1")
ROOM = len(REPEAT) + 20


class Stage:
    """A line to a platform in memory, and what was noted before each message."""

    def __init__(self, **abilities: object) -> None:
        self.platform = FakePlatform(Abilities(longest_message=ROOM, **abilities))
        self.line: ChannelRuntime = made(self.platform.kind(), self.platform.made(None), FakeClock())
        self.begun: list[tuple[int, int]] = []

    async def begin(self, slot: Slot, pieces: Sequence[Piece], *, repeats: int = 0) -> None:
        self.begun.append((len(pieces), repeats))

    def attempt(self, text: str, **facts: object) -> Attempt:
        slot = {
            "id": 1,
            "key": "s:r",
            "to": TO,
            "content": Content(text=text),
            "session": "s",
            "version": 1,
            "state": SlotState.PENDING,
            "pieces": (),
            "epoch": 1,
            "attempts": 0,
            "repeats": 0,
            "answers": "",
            "error": "",
            "at": 0.0,
        }  # fmt: skip - one field a line would hide the test
        return Attempt(self.line, Slot(**{**slot, **facts}), self.begin, patience=0.5)

    def texts(self) -> list[str]:
        return [shown.text for shown in self.platform.chats.of("1")]


async def test_a_file_that_the_platform_does_not_take_is_told_and_the_rest_is_shown(tmp_path: Path):
    stage = Stage(largest_file=2_000_000)
    stage.line.kind = replace(stage.line.kind, abilities=replace(stage.line.kind.abilities, longest_message=400))
    files = []
    for name, size in (("small.bin", 2_000_000), ("large.bin", 2_100_000)):
        (tmp_path / name).write_bytes(bytes(size))
        files.append(Attachment(path=str(tmp_path / name), name=name))
    attempt = stage.attempt("", content=Content(text="Here:", files=tuple(files)))

    await attempt.show()

    assert [shown.file for shown in stage.platform.chats.of("1")] == ["", "small.bin", ""]
    assert stage.texts()[-1] == "(The file large.bin is too large: Fake takes 2 MB, it has 2.1.)"


async def test_a_file_that_is_not_there_is_the_platforms_to_refuse():
    stage = Stage(largest_file=9)
    files = (Attachment(path="/nowhere/a.bin", name="a.bin"),)

    await stage.attempt("", content=Content(text="", files=files)).show()

    assert [shown.file for shown in stage.platform.chats.of("1")] == ["a.bin"]


async def test_each_piece_is_noted_before_it_is_sent():
    stage = Stage()
    attempt = stage.attempt("one one one one\n\ntwo two two two")

    await attempt.show()

    assert stage.begun == [(0, 0), (1, 0)]
    assert [piece.version for piece in attempt.pieces] == [1, 1]


async def test_what_was_shown_before_a_failure_is_not_shown_again():
    stage = Stage()
    first = stage.attempt("one one one one\n\ntwo two two two")
    stage.platform.chats.troubles.extend([("nothing", Trouble.BUSY)])
    await first._add(first._line.parts(Content(text="one one one one"), slot=1, to=TO)[0])

    again = stage.attempt("one one one one\n\ntwo two two two", pieces=tuple(first.pieces))
    await again.show()

    assert stage.texts() == ["one one one one", "two two two two"]


async def test_a_new_version_changes_adds_and_takes_away():
    stage = Stage(edit=True, delete=True)
    first = stage.attempt("one one one one\n\ntwo two two two")
    await first.show()

    shorter = stage.attempt("other", version=2, pieces=tuple(first.pieces))
    await shorter.show()
    assert stage.texts() == ["other"]

    longer = stage.attempt("three three three\n\nfour four four", version=3, pieces=tuple(shorter.pieces))
    await longer.show()
    assert stage.texts() == ["three three three", "four four four"]


async def test_where_nothing_can_be_changed_what_is_shown_stays():
    stage = Stage()
    first = stage.attempt("one")
    await first.show()

    await stage.attempt("other", version=2, pieces=tuple(first.pieces)).show()

    assert stage.texts() == ["one"]


async def test_a_message_that_somebody_took_away_is_sent_anew_where_nothing_follows():
    stage = Stage(edit=True, delete=True)
    first = stage.attempt("one one one one\n\ntwo two two two")
    await first.show()
    for piece in first.pieces:
        await stage.line.channel.delete(TO, piece.receipt)

    again = stage.attempt("three three three\n\nfour four four", version=2, pieces=tuple(first.pieces))
    await again.show()
    assert stage.texts() == ["four four four"]

    gone = stage.attempt("x", version=3, pieces=(Piece(receipt="404", version=1), Piece(receipt="405", version=1)))
    await gone.show()
    assert len(gone.pieces) == 1


async def test_a_change_may_be_made_twice_so_a_lost_answer_is_a_failure():
    stage = Stage(edit=True)
    stage.platform.chats.order(Trouble.DEAF, "edit")
    first = stage.attempt("one")
    await first.show()

    with pytest.raises(NotNow):
        await stage.attempt("two", version=2, pieces=tuple(first.pieces)).show()


async def test_what_may_be_there_is_looked_for_where_it_can_be():
    stage = Stage(read_back=True)
    stage.platform.chats.order(Trouble.DEAF, "send")
    with pytest.raises(OutcomeUnknown):
        await stage.attempt("one").show()

    again = stage.attempt("one", state=SlotState.UNSURE)
    await again.show()
    assert (stage.texts(), again.repeats) == (["one"], 0)


async def test_words_of_an_earlier_version_that_are_there_become_the_newer_ones():
    stage = Stage(read_back=True, edit=True)
    stage.platform.chats.order(Trouble.DEAF, "send")
    with pytest.raises(OutcomeUnknown):
        await stage.attempt("one").show()

    reply = stage.attempt("a newer text", state=SlotState.UNSURE, version=2)
    await reply.show()

    assert (stage.texts(), reply.repeats) == (["a newer text"], 0)
    assert [piece.version for piece in reply.pieces] == [2]


async def test_words_that_are_certainly_not_there_are_sent_without_a_mark():
    stage = Stage(read_back=True, edit=True)

    reply = stage.attempt("a newer text", state=SlotState.UNSURE, version=2)
    await reply.show()

    assert (stage.texts(), reply.repeats) == (["a newer text"], 0)


async def test_a_file_that_is_not_found_is_marked_where_words_may_have_been_sent_in_its_place():
    stage = Stage(read_back=True, edit=True, largest_file=1_000_000)
    content = Content(text="", files=(Attachment(path=__file__, name="a.txt", caption="See."),))

    reply = stage.attempt("", content=content, state=SlotState.UNSURE, version=2)
    await reply.show()

    (text,) = stage.texts()
    assert (text.startswith(REPEAT.strip()), reply.repeats) == (True, 1)


async def test_a_key_that_was_used_by_an_earlier_version_is_changed():
    stage = Stage(keyed=inf, edit=True)
    stage.platform.chats.order(Trouble.DEAF, "send")
    with pytest.raises(OutcomeUnknown):
        await stage.attempt("one").show()

    await stage.attempt("two", state=SlotState.UNSURE, version=2).show()

    assert stage.texts() == ["two"]
    assert stage.begun == []


async def test_a_key_that_the_platform_forgot_by_now_is_marked():
    stage = Stage(keyed=120.0)
    await stage.attempt("one").show()
    stage.platform.chats.keys.clear()
    made = stage.line.pacer._clock.now()

    await (late := stage.attempt("one", state=SlotState.UNSURE, at=made - 121.0)).show()
    await (soon := stage.attempt("one", state=SlotState.UNSURE, at=made - 60.0)).show()

    assert (late.repeats, soon.repeats) == (1, 0)


async def test_a_platform_that_never_answers_leaves_the_outcome_open():
    stage = Stage(edit=True)

    async def hang(*_: object) -> str:
        await stage.platform.waiting.get()
        return ""

    stage.line.channel.send = hang
    with pytest.raises(OutcomeUnknown, match="No answer"):
        await stage.attempt("one").show()

    stage.line.channel.edit = hang
    with pytest.raises(NotNow, match="No answer"):
        await stage.attempt("two", version=2, pieces=(Piece(receipt="1", version=1),)).show()


async def test_a_chat_that_is_gone_ends_it():
    stage = Stage()
    stage.platform.chats.order(Trouble.GONE, "send")

    with pytest.raises(NeverHere):
        await stage.attempt("one").show()


async def test_what_a_dead_holder_may_have_sent_under_its_key_shows_what_is_to_be_said_now():
    stage = Stage(edit=True, keyed=inf)
    await stage.attempt("old old old old old\n\nold words again").show()  # Nobody was told of that.

    await stage.attempt("new new new new new\n\nnew words again", version=2, epoch=3).show()

    assert stage.texts() == ["new new new new new", "new words again"]


async def test_what_was_sent_is_found_though_the_platforms_clock_is_behind():
    stage = Stage(read_back=True)
    await stage.attempt("Hello.").show()
    channel, sent_at = stage.line.channel, 1_000.0
    find = channel.find

    async def after(to: Conversation, part: Part, key: str, since: float) -> str | None:
        return await find(to, part, key, since) if sent_at >= since else None

    channel.find = after
    await stage.attempt("Hello.", state=SlotState.UNSURE, at=sent_at + 60).show()

    assert stage.texts() == ["Hello."]


async def test_a_file_may_take_longer_than_words(tmp_path: Path):
    stage = Stage(largest_file=9)
    send = stage.line.channel.send
    (tmp_path / "a.bin").write_bytes(b"a")

    async def slow(*given: object) -> str:
        await asyncio.sleep(0.08)
        return await send(*given)

    stage.line.channel.send = slow
    attempt = stage.attempt("", content=Content(text="", files=(Attachment(path=str(tmp_path / "a.bin"), name="a"),)))
    attempt._patience = 0.05
    await attempt.show()

    assert [shown.file for shown in stage.platform.chats.of("1")] == ["a"]
