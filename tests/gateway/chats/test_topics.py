"""Topics, homes, settings of one chat, and hidden ids, as people in a chat meet them."""

import logging
from pathlib import Path

import pytest

from hermes_agent.app.settings import Settings
from hermes_agent.cli.commands.webhook import place_of
from hermes_agent.core.chat import Standing
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.channel import Media, NeverHere, Sender
from hermes_agent.host.config import load
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.channel import FakePlatform
from tests.gateway.harness import Harness, eventually, harness


def asked(here: Harness) -> str:
    return str(here.model.asked[-1].messages)


async def test_each_topic_is_a_conversation_of_its_own(tmp_path: Path):
    async with harness(tmp_path, lambda heard: Say("Yes.")) as here:
        await here.ask("I am in the chat")
        assert "Topic food" in await here.ask("/topic create food")
        await here.ask("I talk of food")
        assert "I am in the chat" not in asked(here)
        await here.ask("/topic off")
        await here.ask("I am back")

        assert "I am in the chat" in asked(here)
        assert "I talk of food" not in asked(here)
        keys = {record.conversation for record in await here.store.sessions.list()}
        assert keys == {"fake:dm:1", "fake:dm:1#food"}


async def test_what_is_said_right_behind_a_topic_belongs_to_it(tmp_path: Path):
    async with harness(tmp_path, lambda heard: Say("Yes.")) as here:
        await here.ask("I am in the chat")
        await here.platform.say("/topic create food")
        await here.platform.say("I talk of food")
        await here.shown(3)
        await here.rest()

        assert "I am in the chat" not in asked(here)


async def test_what_is_said_right_behind_a_command_comes_after_it(tmp_path: Path):
    async with harness(tmp_path, lambda heard: Say("Yes.")) as here:
        await here.ask("I am in the old session")
        await here.platform.say("/new")
        await here.platform.say("I am in the new session")
        await here.platform.again()
        await here.shown(3)
        await here.rest()

        assert "I am in the old session" not in asked(here)
        assert len(here.model.exchanges) == 2
        assert len(here.platform.chats.of("1")) == 3


async def test_a_topic_that_is_told_twice_is_made_once(tmp_path: Path):
    async with harness(tmp_path, []) as here:
        assert "Topic food" in await here.ask("/topic create food")
        await here.platform.again()
        await here.rest()

        assert [shown.text.split(":")[0] for shown in here.platform.chats.of("1")] == ["Topic food"]


async def test_topics_of_a_group_are_each_person_s_own(tmp_path: Path):
    rules = "owners: ['7']\nmembers: ['8']\ngroups: ['5']\n"
    async with harness(tmp_path, lambda heard: Say("Yes."), rules) as here:
        await here.ask("/topic create food", user="7", chat="5", group=True)
        await here.ask("Hi", user="8", chat="5", group=True, addressed=True)

        assert "fake:group:5::8" in {record.conversation for record in await here.store.sessions.list()}


async def test_the_home_of_a_channel_is_set_in_its_chat_by_its_owner(tmp_path: Path):
    async with harness(tmp_path, [], "owners: ['7']\nmembers: ['8']\n") as here:
        home = here.gateway.runtime.home
        assert "You may not use" in await here.ask("/sethome", user="8", chat="8")
        assert "home of fake" in await here.ask("/sethome")
        assert load(home, Settings).value.gateway.channels["fake"].home == "1"
        await eventually(lambda: here.gateway.settings.channels["fake"].home == "1")
        assert "Send `/sethome`" in await here.ask("/sethome there")
        assert "no home chat" in await here.ask("/sethome off")
        assert load(home, Settings).value.gateway.channels["fake"].home == ""


def test_a_channel_alone_names_its_home(tmp_path: Path):
    (tmp_path / "config.yaml").write_text("gateway:\n  channels:\n    telegram: {home: '-5:7'}\n    slack: {}\n")
    settings = load(Home(root=tmp_path, base=tmp_path), Settings).value.gateway
    found = place_of("telegram", settings)
    assert (found.chat_kind, found.chat, found.thread) == ("group", "-5", "7")
    with pytest.raises(ConfigError, match="sethome"):
        place_of("slack", settings)


async def test_a_chat_has_a_model_and_toolsets_of_its_own(tmp_path: Path):
    rules = (
        "owners: ['7']\ntoolsets: [todo, clarify]\nchats:\n  '2':\n    model: custom/other\n    toolsets: [clarify]\n"
    )
    async with harness(tmp_path, lambda heard: Say("Yes."), rules) as here:
        await here.ask("/status", chat="2")  # A command may be the first thing that is said.
        assert [record.model for record in await here.store.sessions.list()] == ["custom/other"]
        await here.ask("Hi", chat="2")
        assert [tool.name for tool in here.model.asked[-1].tools] == ["clarify"]
        assert here.model.asked[-1].model == "other"
        await here.ask("Hi", chat="1")
        assert {tool.name for tool in here.model.asked[-1].tools} == {"clarify", "todo"}


async def test_a_chat_that_need_not_name_the_agent_and_one_that_is_shared(tmp_path: Path):
    rules = (
        "owners: ['7']\nmembers: ['8']\ngroups: ['*']\n"
        "chats:\n  '5': {mention: false, shared: true}\n  '6': {mention: true}\n"
    )
    async with harness(tmp_path, lambda heard: Say("Yes."), rules) as here:
        await here.ask("I am Ann", user="7", chat="5", group=True, name="Ann")
        await here.ask("I am Bo", user="8", chat="5", group=True, name="Bo")
        await here.platform.say("Hi", user="7", chat="6", group=True)
        await here.rest()

        assert "[Ann] I am Ann" in asked(here)
        assert "[Bo] I am Bo" in asked(here)
        assert not here.platform.chats.of("6")


PHONE = "+4915112345678"


@pytest.mark.parametrize(("hash_ids", "setting"), [(True, ""), (False, "privacy:\n  hash_ids: true\n")])
async def test_an_id_that_is_a_phone_number_reaches_neither_the_model_nor_the_log(
    tmp_path: Path, hash_ids: bool, setting: str
):
    platform = FakePlatform()
    made = platform.kind(hash_ids=hash_ids)
    platform.kind = lambda **_: made
    rules = f"owners: ['{PHONE}']\ngroups: ['*']\nshared: true\n"
    async with harness(tmp_path, lambda heard: Say("Yes."), rules, platform=platform, more=setting) as here:
        await here.ask("Hi", user=PHONE, chat=PHONE, group=True, addressed=True, name=PHONE)
        logging.getLogger("hermes_agent.gateway").warning("slot of fake:dm:%s broke for %s", PHONE, PHONE)
        text = here.gateway.runtime.home.log_file.read_text()

        body = here.model.exchanges[-1].request.body.decode()
        assert PHONE not in body
        assert here.gateway.access.pseudonyms.of(PHONE) in body
        assert PHONE not in text
        assert here.gateway.access.pseudonyms.of(PHONE) in text
        assert (await here.store.sessions.list())[0].conversation == f"fake:group:{PHONE}"


async def test_an_id_in_the_words_of_a_failure_does_not_reach_the_model(tmp_path: Path):
    async def fetch() -> bytes:
        raise NeverHere(f"{PHONE} takes it back")

    broken = Media(name=f"{PHONE}.pdf", media_type="application/pdf", size=1, reference="broken")
    hidden = "privacy:\n  hash_ids: true\n"
    async with harness(tmp_path, [Say("Yes.")], f"owners: ['{PHONE}']\n", more=hidden) as here:
        here.platform.files["broken"] = fetch
        await here.platform.say("See", user=PHONE, media=(broken,))
        await eventually(lambda: len(here.model.exchanges) == 1)

        body = here.model.exchanges[0].request.body.decode()
        assert "takes it back" in body
        assert PHONE not in body


async def test_where_ids_are_no_secret_they_are_shown(tmp_path: Path):
    async with harness(tmp_path, [], more="privacy:\n  hash_ids: false\n") as here:
        who = here.gateway.access.principal("fake", Sender(user=PHONE, name=PHONE), Standing.MEMBER)
        assert (who.name, who.alias) == (PHONE, "")
