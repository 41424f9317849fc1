"""New settings and secrets hold for what comes next; broken ones change nothing; both are said in one line."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.app.learning.learner import Learner
from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.reloading import Reloading, leaves, report
from hermes_agent.app.settings import Settings
from hermes_agent.app.snapshot import SettingsSnapshot
from hermes_agent.app.toolkit import Toolkit
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import ConfigError
from hermes_agent.gateway.channel import Channel, Needs, Option
from hermes_agent.gateway.opening import open_gateway
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Answer, Call, Pace, Say
from hermes_agent.replay.recorder import Recorder
from hermes_agent.testing.channel import FakePlatform
from hermes_agent.testing.model_servers import openai_model, serving
from tests.app.place import settle_home
from tests.gateway.harness import Harness, eventually, harness


def lines_of(here: Harness) -> list[str]:
    log = here.gateway.runtime.home.log_file
    text = log.read_text() if log.exists() else ""
    return [line for line in text.splitlines() if "app.reloading" in line]


def rewrite(here: Harness, old: str, new: str) -> None:
    file = here.gateway.runtime.home.config_file
    file.write_text(file.read_text().replace(old, new))


async def said(here: Harness, count: int) -> list[str]:
    await eventually(lambda: len(lines_of(here)) == count)
    return lines_of(here)


async def test_rules_that_change_hold_for_what_is_heard_next_and_one_line_says_which(tmp_path: Path):
    async with harness(tmp_path, [Say("Hello.")]) as here:
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
    async with harness(tmp_path, [Say("Hello.")]) as here:
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
        gateway.reloading.wake()
        await eventually(lambda: notice in gateway.reloading.notice)

        assert gateway.settings.channels == {}


async def test_a_channel_begins_and_ends_with_its_settings(tmp_path: Path):
    platform = FakePlatform()
    async with harness(tmp_path, [Say("Hello."), Say("Again.")], platform=platform) as here:
        await here.ask("Hi")
        first = here.gateway.known["fake"]

        rewrite(here, "enabled: true", "enabled: false")
        await eventually(lambda: not here.gateway.known and first.channel.closed)
        rewrite(here, "enabled: false", "enabled: true")
        await eventually(lambda: "fake" in here.gateway.lines)

        assert await here.ask("Hi again") == "Again."


async def test_what_holds_after_a_restart_alone_is_named(tmp_path: Path):
    async with harness(tmp_path, [], more="agent:\n  max_turns: 5\nstore:\n  url: ''\n") as here:
        rewrite(here, "url: ''", "url: postgresql://somewhere")
        (line,) = await said(here, 1)

        assert "after a restart (`hermes gateway restart`): store.url" in line
        assert "from now on" not in line
        assert "store.url" in here.gateway.reloading.problems
        assert not here.gateway.reloading.notice

        rewrite(here, "url: postgresql://somewhere", "url: ''")
        await eventually(lambda: not here.gateway.reloading.problems)


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


def test_values_are_never_said():
    assert leaves({"a": {"b": 1, "c": [2]}, "d": 3}) == {"a.b": 1, "a.c": [2], "d": 3}
    assert report(["a"], ["b"]).endswith("from now on: a; after a restart (`hermes gateway restart`): b")


class Part:
    """A follower that fails the first time."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.tried: list[float] = []

    def check(self, settings: Settings, secret: Callable[[str], str]) -> None:
        if settings.gateway.drain_seconds > 100:
            raise ConfigError(f"Too long for {secret('NAME') or 'nobody'}.")

    async def follow(self, settings: Settings) -> None:
        self.tried.append(settings.gateway.drain_seconds)
        if len(self.tried) == 1:
            raise self.error


@asynccontextmanager
async def alone(tmp_path: Path, part: Part, options: Options | None = None) -> AsyncIterator[Reloading]:
    home = settle_home(tmp_path, "http://127.0.0.1:9")
    async with open_system(home, options) as runtime:
        yield Reloading(runtime, [part], lambda: None)


async def test_what_could_not_be_taken_over_is_taken_over_when_it_is_read_again(tmp_path: Path):
    part = Part(OSError("No more files."))
    async with alone(tmp_path, part) as reloading:
        with (tmp_path / "config.yaml").open("a") as file:
            file.write("gateway:\n  drain_seconds: 7\n")
        with pytest.raises(OSError, match="No more files"):
            await reloading.read()
        await reloading.read()
        await reloading.read()

    assert part.tried == [7, 7]


async def test_what_a_part_cannot_do_is_told_the_rest_holds_and_it_is_tried_when_they_are_read_again(tmp_path: Path):
    part = Part(ConfigError("The port is taken."))
    async with alone(tmp_path, part) as reloading:
        with (tmp_path / "config.yaml").open("a") as file:
            file.write("agent:\n  max_turns: 3\n")
        await reloading.read()

        assert reloading.notice == "The port is taken."
        assert reloading._runtime.settings.agent.max_turns == 3

        await reloading.read()
        await reloading.read()

        assert len(part.tried) == 2
        assert not reloading.notice


async def test_what_a_part_refuses_changes_nothing(tmp_path: Path):
    part = Part(OSError())
    async with alone(tmp_path, part) as reloading:
        with (tmp_path / "config.yaml").open("a") as file:
            file.write("gateway:\n  drain_seconds: 700\n")
        (tmp_path / ".env").write_text("NAME=Ann\n")
        await reloading.read()

        assert reloading.notice == "Too long for Ann. The settings of before stay in force."
        assert reloading._runtime.settings.gateway.drain_seconds != 700
        assert not part.tried


async def test_a_home_without_a_file_of_settings_is_a_home_with_the_usual_ones(tmp_path: Path):
    async with open_system(Home(root=tmp_path, base=tmp_path)) as runtime:
        reloading = Reloading(runtime, [], lambda: None)
        asked = reloading.notice
        await reloading.read()

        assert "hermes setup" in asked  # There is no model.
        assert reloading.notice == asked
        (tmp_path / "config.yaml").write_text("model:\n  default: demo/scripted\n")
        await reloading.read()
        assert not reloading.notice


async def test_what_is_being_taken_over_at_the_end_is_waited_for(tmp_path: Path):
    class Slow(Part):
        async def follow(self, settings: Settings) -> None:
            begun.set()
            await asyncio.sleep(0.1)
            self.tried.append(settings.gateway.drain_seconds)

    part, begun = Slow(OSError()), asyncio.Event()
    async with alone(tmp_path, part) as reloading:
        async with reloading.following():
            with (tmp_path / "config.yaml").open("a") as file:
                file.write("gateway:\n  drain_seconds: 7\n")
            await begun.wait()

        assert part.tried == [7]


async def test_a_recorded_process_keeps_the_settings_that_its_recording_begins_with(tmp_path: Path):
    tape = Recorder(tmp_path / "tape.jsonl", SystemClock())
    part = Part(ConfigError("Never."))
    part.tried.append(0)
    async with alone(tmp_path, part, Options(tape=tape)) as reloading:
        with (tmp_path / "config.yaml").open("a") as file:
            file.write("agent:\n  max_turns: 3\ngateway:\n  drain_seconds: 7\n")
        await reloading.read()

        assert reloading.later == ["agent.max_turns"]
        assert reloading._runtime.settings.agent.max_turns != 3
        assert part.tried == [0, 7]


async def test_another_model_answers_what_is_said_next_and_what_runs_goes_on(tmp_path: Path):
    slow = Answer(pieces=(Say("From the first."),), pace=Pace(first=1.0))
    async with serving(openai_model([Say("From the second.")], keys=("second-key-0123",))) as second:
        async with harness(tmp_path, [slow], more="agent:\n  max_turns: 5\n") as here:
            await here.platform.say("Hi", chat="1")
            await eventually(lambda: len(here.model.asked) == 1)

            env = here.gateway.runtime.home.env_file
            env.write_text("CUSTOM_API_KEY=second-key-0123\n")
            env.chmod(0o600)
            rewrite(
                here, f"default: custom/m\n  base_url: {here.model.url}", f"default: custom/n\n  base_url: {second.url}"
            )
            await eventually(lambda: here.gateway.runtime.settings.model.default == "custom/n")
            held = here.gateway.runtime.snapshots.count
            answer = await here.ask("Hi", chat="2")
            shown = await here.shown(1, "1")
            await eventually(lambda: here.gateway.runtime.snapshots.count == 1)

        assert answer == "From the second."
        assert shown[-1].text == "From the first."
        assert held >= 2
        log = (tmp_path / "home/logs/hermes.log").read_text()
        assert "model.default" in log
        assert "CUSTOM_API_KEY (.env)" in log
        assert "second-key-0123" not in log


async def test_another_token_makes_the_channel_anew(tmp_path: Path):
    class Telling(FakePlatform):
        def made(self, needs: Needs) -> Channel:
            tokens.append(needs.secret("FAKE_BOT_TOKEN"))
            return super().made(needs)

    tokens: list[str] = []
    async with harness(tmp_path, [Say("Hello.")], platform=Telling()) as here:
        first = here.gateway.known["fake"]
        env = here.gateway.runtime.home.env_file
        env.write_text("FAKE_BOT_TOKEN=another-one\n")
        await eventually(lambda: here.gateway.known.get("fake", first) is not first)

        assert tokens == ["", "another-one"]
        assert first.channel.closed
        assert await here.ask("Hi") == "Hello."


async def test_owners_that_are_added_are_hidden_where_ids_are(tmp_path: Path):
    async with harness(tmp_path, [], more="privacy:\n  hash_ids: true\n") as here:
        rewrite(here, "owners: ['7']", "owners: ['7', '+4915112345678']")
        await said(here, 1)

        assert "4915112345678" not in here.gateway.access.pseudonyms.hide("heard of +4915112345678")


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.timeout(90)
def built() -> int:
    gc.collect()
    return sum(isinstance(each, SettingsSnapshot | Toolkit | Learner) for each in gc.get_objects())


async def test_many_reloads_leave_nothing_behind(tmp_path: Path):
    before = built()  # by tests before this one
    async with harness(tmp_path, lambda _: Say("Hello."), more="agent:\n  max_turns: 5\n") as here:
        runtime, sizes, files = here.gateway.runtime, list[int](), list[int]()
        for count in range(50):
            rewrite(here, f"max_turns: {5 + count}\n", f"max_turns: {6 + count}\n")
            await here.gateway.reloading.read()
            assert await here.ask("Hi", chat=str(count)) == "Hello."
            await eventually(lambda: runtime.snapshots.count == 1)
            if count % 10 == 9:
                sizes.append(built() - before)
                files.append(open_files())
        assert runtime.settings.agent.max_turns == 55
        assert sizes[-1] <= sizes[0] <= 3
        assert files[-1] <= files[0] + 2


async def test_tools_that_are_taken_away_in_a_conversation_are_not_there_for_what_is_said_next(tmp_path: Path):
    script = [Call("todo", {}), Say("Looked."), Call("todo", {}), Say("Tried.")]
    async with harness(tmp_path, script, more="tools:\n  fake:\n    disabled: [web]\n") as here:
        assert await here.ask("Hi") == "Looked."
        rewrite(here, "disabled: [web]", "disabled: [web, todo]")
        await said(here, 1)

        assert await here.ask("Again") == "Tried."
        assert "todo" not in here.gateway.runtime.snapshots.now.toolkit.built_in.toolsets("fake")
        assert "There is no tool" in str(here.model.asked[-1].messages[-1])


async def test_how_many_runs_and_where_they_work_changes_with_the_settings(tmp_path: Path):
    async with harness(tmp_path, [Say("There.")], gateway="max_runs: 7") as here:
        rewrite(here, "max_runs: 7", f"max_runs: 3\n  workspace: {tmp_path / 'elsewhere'}")
        await said(here, 1)

        assert here.gateway.runtime.hermes.scheduler.service.most == 3
        assert await here.ask("Hi") == "There."
        assert here.gateway.command_queue.workspace == str(tmp_path / "elsewhere")
        assert (tmp_path / "elsewhere").is_dir()


async def test_a_file_that_somebody_is_writing_is_read_when_they_have_done(tmp_path: Path):
    class Written(Part):
        def check(self, settings: Settings, secret: Callable[[str], str]) -> None:
            raise AssertionError("Half of it was read.")

    async with alone(tmp_path, Written(OSError())) as reloading:
        (tmp_path / "config.yaml").write_text("gateway:\n  drain_seconds: 7\n")
        reading = asyncio.ensure_future(reloading.read())
        await asyncio.sleep(0)
        (tmp_path / "config.yaml").write_text("gateway:\n  drain_seconds: 70\n")
        await reading

        assert reloading._wanted.is_set()


async def test_what_breaks_is_logged_and_the_next_saving_is_read_all_the_same(tmp_path: Path):
    part = Part(OSError("No more files."))
    async with alone(tmp_path, part) as reloading, reloading.following():
        with (tmp_path / "config.yaml").open("a") as file:
            file.write("gateway:\n  drain_seconds: 7\n")
        await eventually(lambda: part.tried == [7])
        reloading.wake()
        await eventually(lambda: part.tried == [7, 7])

    assert "No more files" in (tmp_path / "logs/hermes.log").read_text()
