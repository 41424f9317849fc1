"""New settings hold for what is heard next; broken ones change nothing; both are said in one line."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.app.service.settings import GatewaySettings
from hermes_agent.app.settings import Settings
from hermes_agent.gateway.channel import Kind, Needs, Option
from hermes_agent.gateway.opening import open_gateway
from hermes_agent.gateway.reloading import Reloading, is_at_once, leaves, told
from hermes_agent.host.config import load
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.channel import FakePlatform
from tests.app.place import settle_home
from tests.gateway.house import House, eventually, house


def lines_of(here: House) -> list[str]:
    log = here.gateway.runtime.home.log_file
    text = log.read_text() if log.exists() else ""
    return [line for line in text.splitlines() if "gateway.reloading" in line]


def rewrite(here: House, old: str, new: str) -> None:
    file = here.gateway.runtime.home.config_file
    file.write_text(file.read_text().replace(old, new))


async def said(here: House, count: int) -> list[str]:
    await eventually(lambda: len(lines_of(here)) == count)
    return lines_of(here)


async def test_rules_that_change_hold_for_what_is_heard_next_and_one_line_says_which(tmp_path: Path):
    async with house(tmp_path, [Say("Hello.")]) as here:
        assert "hermes pairing approve" in await here.ask("Hi", user="8", chat="8")

        rewrite(
            here, "owners: ['7']", "owners: ['7']\n      members: ['8']\n      chats:\n        '8': {hint: Be brief.}"
        )
        (line,) = await said(here, 1)

        assert await here.ask("Hi", user="8", chat="8") == "Hello."
        assert "(Be brief.)" in str(here.model.asked[-1].messages)
        assert "from now on: gateway.channels.fake.chats.8.hint, gateway.channels.fake.members" in line
        assert "'8'" not in line


async def test_a_file_that_is_broken_changes_nothing_and_that_is_said_once(tmp_path: Path):
    async with house(tmp_path, [Say("Hello.")]) as here:
        rewrite(here, "owners: ['7']", "ownrs: ['7']")
        (line,) = await said(here, 1)
        assert await here.ask("Hi") == "Hello."
        await here.gateway.reloading.read()

        assert "ownrs" in line
        assert "The settings of before stay in force" in line
        assert here.gateway.reloading.notice in line.replace('\\"', '"')

        rewrite(here, "ownrs: ['7']", "owners: ['7']")
        await eventually(lambda: not here.gateway.reloading.notice)
        assert len(lines_of(here)) == 1


@pytest.mark.parametrize(
    ("old", "new", "notice"),
    [
        ("    fake:", "    fak:\n      enabled: true\n    fake:", "no channel `fak`"),
        ("", "", "config.yaml is gone or empty"),
    ],
)
async def test_a_channel_that_there_is_not_or_no_file_at_all_changes_nothing(
    tmp_path: Path, old: str, new: str, notice: str
):
    home, asked = Home(root=tmp_path, base=tmp_path), list[str]()
    settle_home(home.root, "http://127.0.0.1:9")
    with home.config_file.open("a") as file:
        file.write("gateway:\n  channels: {}\n")
    async with open_gateway(home, changed=lambda: asked.append("")) as gateway:
        home.config_file.write_text("gateway:\n  channels: {fak: {enabled: true}}\n")
        if not old:
            home.config_file.unlink()
        gateway.reloading.look()
        await eventually(lambda: notice in gateway.reloading.notice)

        assert gateway.settings.channels == {}


async def test_a_channel_begins_and_ends_with_its_settings(tmp_path: Path):
    platform = FakePlatform()
    async with house(tmp_path, [Say("Hello."), Say("Again.")], platform=platform) as here:
        await here.ask("Hi")
        first = here.gateway.known["fake"]

        rewrite(here, "enabled: true", "enabled: false")
        await eventually(lambda: not here.gateway.known and first.channel.closed)
        rewrite(here, "enabled: false", "enabled: true")
        await eventually(lambda: "fake" in here.gateway.lines)

        assert await here.ask("Hi again") == "Again."


async def test_what_holds_after_a_restart_alone_is_named(tmp_path: Path):
    async with house(tmp_path, [], more="agent:\n  max_turns: 5\n") as here:
        rewrite(here, "max_turns: 5", "max_turns: 6")
        (line,) = await said(here, 1)

        assert "after a restart (`hermes gateway restart`): agent.max_turns" in line
        assert "from now on" not in line


async def test_a_channel_that_cannot_be_made_harms_no_other_and_is_made_when_its_settings_are_mended(tmp_path: Path):
    broken, sound = FakePlatform(name="broken"), FakePlatform()
    good = broken.kind()

    def make(needs: Needs):
        if not needs.options["address"]:
            raise ValueError("No address.")
        return good.make(needs)

    home = Home(root=tmp_path, base=tmp_path)
    settle_home(home.root, "http://127.0.0.1:9")
    with home.config_file.open("a") as file:
        file.write("gateway:\n  channels:\n    fake: {enabled: true}\n    broken: {enabled: true}\n")
    kinds = {"broken": replace(good, make=make, options={"address": Option(doc="")}), "fake": sound.kind()}
    async with open_gateway(home, kinds) as gateway:
        await eventually(lambda: "fake" in gateway.lines)
        assert gateway.unmade == {"broken": "ValueError: No address."}

        text = home.config_file.read_text()
        home.config_file.write_text(
            text.replace("broken: {enabled: true}", "broken: {enabled: true, options: {address: a}}")
        )
        await eventually(lambda: "broken" in gateway.lines)
        assert not gateway.unmade


@pytest.mark.parametrize(
    ("key", "at_once"), [("webhooks.routes.push.prompt", True), ("webhooks.clock_skew", True), ("webhooks.port", False)]
)
def test_routes_of_webhooks_hold_at_once_and_where_they_listen_does_not(key: str, at_once: bool):
    assert is_at_once(key) is at_once


def test_values_are_never_said():
    assert leaves({"a": {"b": 1, "c": [2]}, "d": 3}) == {"a.b": 1, "a.c": [2], "d": 3}
    assert told(["a"], ["b"]).endswith("from now on: a; after a restart (`hermes gateway restart`): b")


async def test_what_could_not_be_taken_over_is_taken_over_when_it_is_read_again(tmp_path: Path):
    home, tried = Home(root=tmp_path, base=tmp_path), list[float]()
    settle_home(home.root, "http://127.0.0.1:9")

    async def apply(settings: GatewaySettings, _kinds: Mapping[str, Kind]) -> None:
        tried.append(settings.drain_seconds)
        if len(tried) == 1:
            raise OSError("No more files.")

    reloading = Reloading(home, load(home, Settings), lambda _: {}, apply, lambda: None)
    with home.config_file.open("a") as file:
        file.write("gateway:\n  drain_seconds: 7\n")
    with pytest.raises(OSError, match="No more files"):
        await reloading.read()
    await reloading.read()
    await reloading.read()

    assert tried == [7, 7]
