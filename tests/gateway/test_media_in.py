"""Pictures, files and spoken words that people send, over each platform's protocol: to the model, to the workspace."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import replace
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path

import pytest

from hermes_agent.core.messages import Image, Text
from hermes_agent.gateway.channel import Media, Withdrawn
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.model_servers import ModelServer
from tests.contracts.channels import MAKERS, Stage
from tests.doubles.discord import DiscordPlatform
from tests.doubles.email import OWN, MailPlatform
from tests.doubles.matrix import MatrixPlatform
from tests.doubles.slack import SlackPlatform
from tests.doubles.telegram import TelegramDouble
from tests.gateway.harness import eventually, harness, opened

PNG = b"\x89PNG\r\n\x1a\n" + b"sea" * 900
LARGEST = 20_000_000


@pytest.fixture(params=["discord", "email", "matrix", "slack", "telegram"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    async with MAKERS[request.param](tmp_path) as made:
        yield replace(made, kind=replace(made.kind, make=lambda _: made.channel))


async def enclose(stage: Stage, name: str, kind: str, content: bytes, *, voice: bool = False) -> None:
    """Have a person send a file, with the words "Look"."""
    double = stage.double
    match double:
        case TelegramDouble():
            double.files[name] = content
            field = "voice" if voice else "document"
            file = {"file_id": name, "file_name": name, "mime_type": kind, "file_size": len(content)}
            if kind.startswith("image/"):
                field, file = "photo", [{"file_id": name, "width": 9, "file_size": len(content)}]
            await double.say("", chat=stage.chat, user=stage.person, caption="Look", **{field: file})
        case DiscordPlatform():
            double.files[name] = content
            url = f"{double.url}/files/{name}"
            file = {"url": url, "filename": name, "size": len(content), "content_type": kind}
            flags = {"flags": 1 << 13} if voice else {}
            await double.say("Look", attachments=[file], **flags)
        case SlackPlatform():
            double.files[name] = content
            url = f"{double.url}/files/{name}"
            file = {"id": name, "url_private": url, "name": name, "mimetype": kind, "size": len(content)}
            sub = {"subtype": "slack_audio"} if voice else {}
            await double.say("Look", subtype="file_share", files=[{**file, **sub}])
        case MatrixPlatform():
            double.files["f"] = content
            marks = {"org.matrix.msc3245.voice": {}} if voice else {}
            info = {"mimetype": kind, "size": len(content)}
            await double.say("Look", msgtype="m.file", filename=name, url="mxc://hermes.test/f", info=info, **marks)
        case MailPlatform():
            mail = EmailMessage(policy=SMTP)
            mail["From"], mail["To"], mail["Message-ID"] = stage.person, OWN, f"<{name}@people.test>"
            mail.set_content("Look")
            main, _, sub_type = kind.partition("/")
            mail.add_attachment(content, maintype=main, subtype=sub_type, filename=name)
            double.folder.put(mail.as_bytes())


async def heard(model: ModelServer) -> list[Text | Image]:
    await eventually(lambda: bool(model.asked))
    return [part for part in model.asked[-1].messages[-1].parts if isinstance(part, Text | Image)]


def words(parts: list[Text | Image]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


async def test_a_picture_reaches_the_model(stage: Stage, tmp_path: Path):
    async with opened(tmp_path, stage.kind, [Say("A sea.")], f"owners: ['{stage.person}']") as model:
        await enclose(stage, "sea.png", "image/png", PNG)
        parts = await heard(model)

    assert [base64.b64decode(part.data) for part in parts if isinstance(part, Image)] == [PNG]
    assert [part.media_type for part in parts if isinstance(part, Image)] == ["image/png"]
    assert "Look" in words(parts)


async def test_a_picture_that_is_none_is_a_file(stage: Stage, tmp_path: Path):
    async with opened(tmp_path, stage.kind, [Say("No sea.")], f"owners: ['{stage.person}']") as model:
        await enclose(stage, "sea.png", "image/png", b"<html>Sign in</html>")
        parts = await heard(model)

    assert not [part for part in parts if isinstance(part, Image)]
    assert "A file came with this message" in words(parts)


@pytest.mark.parametrize("voice", [False, True])
async def test_a_file_is_in_the_workspace_and_spoken_words_are_said_to_be(stage: Stage, tmp_path: Path, voice: bool):
    name, kind = ("words.ogg", "audio/ogg") if voice else ("report.pdf", "application/pdf")
    async with opened(tmp_path, stage.kind, [Say("I see.")], f"owners: ['{stage.person}']") as model:
        await enclose(stage, name, kind, b"OggS content", voice=voice)
        parts = await heard(model)

    (kept,) = (tmp_path / "home" / "workspace" / "received").iterdir()
    assert kept.read_bytes() == b"OggS content"
    spoken = voice and not isinstance(stage.double, MailPlatform)  # Mail does not tell spoken words from other sounds.
    assert f"A {'spoken message' if spoken else 'file'} came with this message ({kind}" in words(parts)
    assert str(kept) in words(parts)


@pytest.mark.timeout(90)
async def test_a_file_of_twenty_megabytes_is_taken_in_as_it_comes_and_a_larger_one_is_not(stage: Stage, tmp_path: Path):
    large = bytes(range(256)) * (LARGEST // 256)
    async with opened(tmp_path, stage.kind, [Say("One."), Say("Two.")], f"owners: ['{stage.person}']") as model:
        await enclose(stage, "large.bin", "application/octet-stream", large)
        await eventually(lambda: len(model.asked) == 1, 60)
        first = words(await heard(model))
        await enclose(stage, "larger.bin", "application/octet-stream", large + b"x" * 257)
        await eventually(lambda: len(model.asked) == 2, 60)
        second = words(await heard(model))

    (kept,) = (tmp_path / "home" / "workspace" / "received").iterdir()
    assert kept.read_bytes() == large
    assert f"{len(large):,} bytes" in first
    assert "larger.bin was not taken in: it is larger than 20 MB." in second


class Slow:
    """A file that comes when it may, and how often it was asked for."""

    def __init__(self) -> None:
        self.may_come, self.asked = asyncio.Event(), 0

    async def __call__(self) -> bytes:
        self.asked += 1
        await self.may_come.wait()
        return PNG


FILE = Media(name="a.png", media_type="image/png", size=9, reference="f")


async def test_a_message_is_durable_and_acknowledged_before_its_file_has_come(tmp_path: Path):
    async with harness(tmp_path, lambda _: Say("Yes.")) as here:
        here.platform.files["f"] = slow = Slow()
        await here.platform.say("Look", media=(FILE,))
        await eventually(lambda: slow.asked == 1)
        assert here.platform.received() == 1
        await here.platform.say("And now?")
        await here.platform.again()
        assert await here.ask("Hi", chat="2") == "Yes."
        assert "Look" not in str(here.model.asked[-1].messages)

        slow.may_come.set()
        await eventually(lambda: "And now?" in str(here.model.asked[-1].messages))
        told = str(here.model.asked[-1].messages)

    assert told.index("Look") < told.index("And now?")
    assert slow.asked == 1


async def test_a_stop_ends_what_is_fetched_and_the_message_is_not_answered(tmp_path: Path):
    async with harness(tmp_path, lambda _: Say("Yes.")) as here:
        here.platform.files["f"] = slow = Slow()
        await here.platform.say("Look", media=(FILE,))
        await eventually(lambda: slow.asked == 1)

        assert await here.ask("/stop") == "Stopped."
        await here.rest()
        assert here.model.asked == []
        assert await here.ask("Hi") == "Yes."


async def test_a_message_that_is_deleted_while_its_file_comes_is_not_answered(tmp_path: Path):
    async with harness(tmp_path, lambda _: Say("Yes.")) as here:
        here.platform.files["f"] = slow = Slow()
        source = await here.platform.say("Look", media=(FILE,))
        await eventually(lambda: slow.asked == 1)
        await here.platform.tell(Withdrawn(source_id=source, where=here.platform.where("1"), by="7"))
        await eventually(lambda: here.platform.received() == 2)
        slow.may_come.set()
        await here.rest()

        assert here.model.asked == []
        assert here.platform.chats.of("1") == []
