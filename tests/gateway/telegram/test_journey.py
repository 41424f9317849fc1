"""A person writes to a bot, and the gateway answers: real HTTP to the double of Telegram and to a model server."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes_agent.core.messages import Image
from hermes_agent.gateway.opening import open_gateway
from hermes_agent.gateway.server import Gateway
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Answer, Call, Say
from hermes_agent.testing.faults import KeepAlives
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving
from hermes_agent.testing.scripted import Script
from tests.app.place import settle_home
from tests.doubles.telegram import TOKEN, TelegramDouble, telegram
from tests.gateway.harness import eventually

SLOW = KeepAlives(reply=Answer(pieces=(Say("One, two, three."),)), every=0.4, count=3)


@asynccontextmanager
async def at_work(path: Path, script: Script) -> AsyncIterator[tuple[TelegramDouble, ModelServer, Gateway]]:
    async with telegram() as double, serving(openai_model(script, keys=())) as model:
        home = Home(root=path / "home", base=path / "home")
        settle_home(home.root, model.url)
        home.env_file.write_text(f"TELEGRAM_BOT_TOKEN={TOKEN}\n")
        home.env_file.chmod(0o600)
        lines = (
            "gateway:\n  channels:\n    telegram:\n      enabled: true\n      owners: ['7']\n      groups: ['-9']\n"
            f"      options:\n        api_url: {double.url}\n"
        )
        with home.config_file.open("a") as file:
            file.write(lines)
        async with open_gateway(home) as gateway:
            yield double, model, gateway


async def test_a_reply_is_formatted_and_told_once(tmp_path: Path):
    async with at_work(tmp_path, [Say("**Hello**, Ann! 1. It works.")]) as (double, _, _gateway):
        await double.say("Hi", chat="7", user="7")
        await double.again()
        await eventually(lambda: bool(double.chats.of("7")))
        await eventually(lambda: double.received() == 2)

        assert [shown.text for shown in double.chats.of("7")] == ["Hello, Ann! 1. It works."]


async def test_a_reply_is_drafted_and_then_sent_as_one_message(tmp_path: Path):
    async with at_work(tmp_path, [SLOW]) as (double, _, gateway):
        await double.say("Count", chat="7", user="7", thread="4")
        await eventually(lambda: "7" in double.chats.drafts)
        drafts = double.chats.drafts["7"]
        await eventually(lambda: bool(double.chats.of("7")))
        await gateway.delivery.idle()

        assert "One, two, three.".startswith(drafts[0])
        (shown,) = double.chats.of("7")
        assert (shown.text, shown.thread, shown.edits) == ("One, two, three.", "4", 0)
        assert double.chats.calls["send"] == 1
        assert "7" not in double.chats.drafts


@pytest.mark.parametrize("known", [True, False])
async def test_where_a_bot_may_not_draft_the_reply_is_one_message_that_changes(tmp_path: Path, known: bool):
    async with at_work(tmp_path, [SLOW]) as (double, _, gateway):
        double.undrafted, double.drafts = known, known
        await double.say("Count", chat="7", user="7")
        await eventually(lambda: double.chats.calls["edit"] == 1)
        await gateway.delivery.idle()

        assert [shown.text for shown in double.chats.of("7")] == ["One, two, three."]
        assert (double.chats.calls["draft"], double.chats.calls["send"]) == (1, 1)


async def test_a_question_is_answered_with_a_button_in_a_topic(tmp_path: Path):
    script = [Call("clarify", {"question": "Which?", "choices": ["red", "blue"]}), Say("Blue it is.")]
    async with at_work(tmp_path, script) as (double, _, _gateway):
        mention = [{"type": "mention", "offset": 0, "length": 11}]
        await double.say("@hermes_bot paint", chat="-9", user="7", group=True, thread="4", entities=mention)
        await eventually(lambda: bool(double.chats.of("-9")))
        question = double.chats.of("-9")[0]
        assert (question.thread, question.buttons) == ("4", ("red", "blue"))

        await double.press(question.id, 1, user="8")
        await double.press(question.id, 1, user="7")
        await eventually(lambda: len(double.chats.of("-9")) == 2)
        await eventually(lambda: len(double.answered) == 2)

        assert [word for _, word in double.answered] == ["This question is for someone else.", "blue"]
        await eventually(lambda: double.chats.of("-9")[0].buttons == ())
        assert double.chats.of("-9")[1].text == "Blue it is."


async def test_a_picture_reaches_the_model(tmp_path: Path):
    async with at_work(tmp_path, [Say("A cat.")]) as (double, model, _gateway):
        double.files["p1"] = b"\x89PNG"
        await double.say("", chat="7", caption="What is it?", photo=[{"file_id": "p1", "width": 9, "file_size": 3}])
        await eventually(lambda: bool(double.chats.of("7")))

        pictures = [part for part in model.asked[0].messages[-1].parts if isinstance(part, Image)]
        assert base64.b64decode(pictures[0].data) == b"\x89PNG"


async def test_a_picture_that_was_asked_for_is_shown_before_the_reply(tmp_path: Path):
    work = tmp_path / "home" / "workspace"
    work.mkdir(parents=True)
    (work / "plot.png").write_bytes(b"\x89PNG")
    script = [Call("send_file", {"path": "plot.png", "caption": "The **plot**"}), Say("There it is.")]
    async with at_work(tmp_path, script) as (double, _, _gateway):
        await double.say("Plot it", chat="7", user="7")
        await eventually(lambda: len(double.chats.of("7")) == 2)

        assert [(shown.file, shown.text) for shown in double.chats.of("7")] == [
            ("plot.png", "The plot"),
            ("", "There it is."),
        ]
        assert double.sent_files == [("sendPhoto", "plot.png", b"\x89PNG")]


async def test_a_long_reply_with_code_keeps_its_blocks(tmp_path: Path):
    code = "\n".join(f"print({number!r})  # a line of a long program" for number in range(200))
    async with at_work(tmp_path, [Say(f"Here:\n```python\n{code}\n```\nDone.")]) as (double, _, gateway):
        await double.say("Write", chat="7")
        await eventually(lambda: len(double.chats.of("7")) >= 2)
        await gateway.delivery.idle()

        shown = [each.text for each in double.chats.of("7")]
        assert sum(text.count("print(") for text in shown) == 200
        assert all(len(text) <= 4096 for text in shown)
