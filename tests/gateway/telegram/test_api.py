"""What the Bot API answers says what may be done about it. (What a channel makes of it is the contract of channels.)"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes_agent.core.chat import Attachment, Conversation
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.channel import ChannelError, Heard, NeverHere, NotNow, OutcomeUnknown, Part, TokenRefused
from hermes_agent.gateway.channels.telegram import CHANNEL, Telegram
from hermes_agent.gateway.chat_migration import ChatMigration
from hermes_agent.gateway.telegram.api import BotApi
from hermes_agent.host.http import Http
from hermes_agent.testing.channel import FakeKept
from hermes_agent.testing.platform import Trouble
from tests.contracts.channels import needs
from tests.doubles.telegram import TOKEN, TelegramDouble, telegram

CHAT = Conversation(platform="telegram", chat="1")


@pytest.fixture
async def double() -> AsyncIterator[TelegramDouble]:
    async with telegram() as made:
        yield made


@pytest.fixture
async def http() -> AsyncIterator[Http]:
    http = Http()
    yield http
    await http.close()


def bot(double: TelegramDouble, http: Http, token: str = TOKEN) -> Telegram:
    return Telegram(BotApi(url=double.url, token=token, http=http), ChatMigration(FakeKept(), "1"), poll_seconds=0.1)


async def hear(_: Heard) -> str:
    return ""


async def test_a_wrong_token_is_said(double: TelegramDouble, http: Http):
    channel = bot(double, http, "1:wrong")

    with pytest.raises(ChannelError, match="TELEGRAM_BOT_TOKEN"):
        await channel.check()
    with pytest.raises(TokenRefused):
        await channel.listen(hear)


async def test_who_cannot_be_reached_was_not_told_anything(http: Http):
    channel = Telegram(BotApi(url="http://127.0.0.1:1", token=TOKEN, http=http), ChatMigration(FakeKept(), "1"))

    with pytest.raises(NotNow, match=r"http://127.0.0.1:1 cannot be reached: All connection attempts failed") as told:
        await channel.send(CHAT, Part(text="Hi"), "k")
    assert TOKEN not in str(told.value)


@pytest.mark.parametrize("trouble", [Trouble.CUT, Trouble.GARBLED])
async def test_an_answer_that_is_none_leaves_the_outcome_open(double: TelegramDouble, http: Http, trouble: Trouble):
    double.chats.order(trouble, "send")

    with pytest.raises(OutcomeUnknown):
        await bot(double, http).send(CHAT, Part(text="Hi"), "k")


async def test_a_poll_that_breaks_is_made_again(double: TelegramDouble, http: Http):
    double.chats.order(Trouble.GARBLED, "listen")

    with pytest.raises(NotNow):
        await bot(double, http).listen(hear)


@pytest.mark.parametrize("file", [False, True])
async def test_an_answer_to_a_deleted_message_is_sent_all_the_same(
    double: TelegramDouble, http: Http, tmp_path: Path, file: bool
):
    double.forgotten.add("5")
    topic = Conversation(platform="telegram", chat_kind="group", chat="-9", thread="4")
    (tmp_path / "a.txt").write_text("x")
    sent = Attachment(path=str(tmp_path / "a.txt"), name="a.txt", media_type="text/plain") if file else None

    await bot(double, http).send(topic, Part(text="Yes.", answers="-9:5", file=sent), "k")

    assert [(shown.text, shown.answers, shown.thread) for shown in double.chats.of("-9")] == [("Yes.", "", "4")]


async def test_a_format_that_is_not_understood_is_sent_plain(double: TelegramDouble, http: Http):
    channel = bot(double, http)
    real = channel._api.call
    calls: list[str] = []

    async def call(method: str, arguments: dict[str, object], **more: float) -> object:
        calls.append(str(arguments.get("parse_mode")))
        broken = {"text": "un_closed *"} if "parse_mode" in arguments else {}
        return await real(method, {**arguments, **broken}, **more)

    channel._api = Recorded(call)
    await channel.send(CHAT, Part(text="*as it is"), "k")

    assert calls == ["MarkdownV2", "None"]
    assert double.chats.of("1")[0].text == "*as it is"


class Recorded:
    def __init__(self, call: object) -> None:
        self.call = call


async def test_a_photo_is_sent_as_one_and_a_missing_file_never(double: TelegramDouble, http: Http, tmp_path: Path):
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    channel = bot(double, http)

    await channel.send(
        CHAT, Part(text="", file=Attachment(path=str(tmp_path / "a.png"), name="a.png", media_type="image/png")), "k"
    )
    assert double.chats.calls["send"] == 1

    with pytest.raises(NeverHere, match="cannot be read"):
        await channel.send(CHAT, Part(text="", file=Attachment(path=str(tmp_path / "no"), name="no")), "k")


async def test_a_file_is_fetched(double: TelegramDouble, http: Http):
    double.files["f1"] = b"content"
    api = BotApi(url=double.url, token=TOKEN, http=http)

    assert await api.fetch("f1", 7) == b"content"
    double.files["f1"] = b"x" * 5_000_000
    assert 1000 < len(await api.fetch("f1", 1000)) < 1_000_000
    for name in ("gone", "pathless"):
        with pytest.raises(NeverHere, match="does not give the file out"):
            await api.fetch(name, 7)


def test_without_a_token_there_is_no_channel(tmp_path: Path):
    with pytest.raises(ConfigError, match="TELEGRAM_BOT_TOKEN"):
        CHANNEL.make(needs(tmp_path, secret=""))
