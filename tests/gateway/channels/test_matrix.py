"""The Matrix channel beyond the contract: files, choices, what is gone, encrypted rooms, settings."""

from dataclasses import replace

import pytest

from hermes_agent.core.chat import Attachment, Button, Conversation
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.channel import ChannelError, MessageGone, NeverHere, Part, Said, TokenRefused, Withdrawn
from hermes_agent.gateway.channels.matrix import CHANNEL
from tests.contracts.channels import needs
from tests.gateway.matrix.hearing import ANN, ROOM, hearing

TO = Conversation(platform="matrix", chat=ROOM)
BUTTONS = (Button(label="Yes", value="y"), Button(label="No", value="n"))


async def test_choices_are_taken_away_by_another_process(tmp_path):
    async with hearing(tmp_path) as at:
        receipt = await at.channel.send(TO, Part(text="May I?", buttons=BUTTONS, slot=3), "k")
        assert at.platform.chats.messages[receipt].buttons == ("Yes", "No")
        fresh = CHANNEL.make(at.needs)
        await fresh.edit(TO, receipt, Part(text="Yes."))
        await fresh.edit(TO, receipt, Part(text="Yes!"))

        assert at.platform.chats.messages[receipt].buttons == ()
        assert at.platform.chats.calls["delete"] == 2


async def test_choices_are_given_to_a_message_that_had_none(tmp_path):
    async with hearing(tmp_path) as at:
        receipt = await at.channel.send(TO, Part(text="Hm"), "k")
        await at.channel.edit(TO, receipt, Part(text="May I?", buttons=BUTTONS, slot=3))

        assert at.platform.chats.messages[receipt].buttons == ("Yes", "No")


async def test_a_message_that_somebody_took_away_is_not_changed(tmp_path):
    async with hearing(tmp_path) as at, at.listening():
        await at.platform.say("hello")
        receipt = await at.channel.send(TO, Part(text="Hi"), "k")
        at.platform.happens(ROOM, "m.room.redaction", {}, ANN, redacts=receipt)
        await at.until(Withdrawn)

        with pytest.raises(MessageGone):
            await at.channel.edit(TO, receipt, Part(text="Hi!"))


async def test_a_thread_that_is_not_there_is_no_other_try(tmp_path):
    async with hearing(tmp_path) as at:
        at.platform.refusal = (400, "M_UNKNOWN")

        with pytest.raises(NeverHere):
            await at.channel.send(TO, Part(text="Hi"), "k")


async def test_a_file_keeps_its_words_and_one_that_is_not_there_is_said_so(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"content")
    part = Part(text="See", file=Attachment(path=str(tmp_path / "a.txt"), name="a.txt"))
    async with hearing(tmp_path) as at:
        receipt = await at.channel.send(TO, part, "k")
        await at.channel.edit(TO, receipt, replace(part, text="Look"))
        assert at.platform.chats.messages[receipt].text == "See"
        assert await at.channel.find(TO, part, "k", 0.0) is None

        missing = Part(text="", file=Attachment(path=str(tmp_path / "none"), name="none"))
        with pytest.raises(NeverHere, match="none cannot be read"):
            await at.channel.send(TO, missing, "k2")


async def test_nothing_goes_into_an_encrypted_room_in_the_clear(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"content")
    async with hearing(tmp_path) as at, at.listening():
        await at.platform.say("hello")
        (said,) = await at.until(Said)
        at.platform.rooms[ROOM].encrypted = True
        file = Attachment(path=str(tmp_path / "a.txt"), name="a.txt")
        for part in (Part(text="secret"), Part(text="", file=file)):
            with pytest.raises(NeverHere, match="encrypted"):
                await at.channel.send(said.where, part, "k")
        at.platform.files["f1"] = b"locked"
        await at.platform.say("a", msgtype="m.file", file={"url": "mxc://hermes.test/f1"})
        media = (await at.until(Said, 2))[1].media[0]
        with pytest.raises(NeverHere, match="encrypted"):
            await at.channel.fetch(media, 10**9)

    assert at.platform.chats.of(ROOM) == []


async def test_typing_ends_with_what_is_said(tmp_path):
    async with hearing(tmp_path) as at:
        await at.channel.typing(TO)
        await at.channel.send(TO, Part(text="Hi"), "k")
        await at.channel.send(TO, Part(text="Hi"), "k2")

        assert at.platform.chats.calls["typing"] == 2


async def test_a_revoked_token_is_a_sentence(tmp_path):
    async with hearing(tmp_path) as at:
        at.platform.refusal = (401, "M_UNKNOWN_TOKEN")

        with pytest.raises(TokenRefused):
            await at.channel.listen(at)
        with pytest.raises(ChannelError, match="token"):
            await at.channel.check()


@pytest.mark.parametrize(
    ("options", "secret", "words"),
    [
        ({}, "x", "homeserver"),
        ({"homeserver": "matrix.org"}, "x", "homeserver"),
        ({"homeserver": "https://matrix.org"}, "", "MATRIX_ACCESS_TOKEN"),
        ({"homeserver": "https://matrix.org", "threads": "maybe"}, "x", "threads"),
    ],
)
def test_settings_that_cannot_work_are_said(tmp_path, options, secret, words):
    with pytest.raises(ConfigError, match=words):
        CHANNEL.make(needs(tmp_path, options, secret))
