"""Permission and size around every call, with the real tools."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.agent.agent import Proposed
from hermes_agent.app.guards import CheckpointHook
from hermes_agent.app.opening import Options
from hermes_agent.core.chat import Conversation, Principal, Standing
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Asked, ToolEnded, ToolStarted
from hermes_agent.core.messages import ToolCall
from hermes_agent.core.tool import tool
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.clock import FakeClock
from hermes_agent.testing.faults import Status
from hermes_agent.testing.place import FakePlace
from hermes_agent.tools.checkpoints.checkpoints import Checkpoints
from hermes_agent.tools.schema import collect
from hermes_agent.tools.settings import CheckpointSettings, TerminalSettings
from hermes_agent.tools.shell import ShellTools
from tests.app.place import place
from tests.tools.bench import Context

DANGEROUS = {"command": "rm -rf build$NONE"}


async def results(here) -> list[str]:
    return [entry.event.message.parts[0].text for entry in await here.log() if isinstance(entry.event, ToolEnded)]


@pytest.mark.parametrize(("answer", "left"), [("once", False), ("deny", True)])
async def test_a_person_decides_about_what_destroys(tmp_path, answer, left):
    async with place(tmp_path, [Call("terminal", DANGEROUS), Say("Done.")]) as here:
        (tmp_path / "work/build").mkdir()
        after = await here.tell("Clean up")
        asked = (await here.until(Asked)).event
        await here.tell(here.inbound(answer, answers=asked.question))
        await here.ended(after)

        assert asked.purpose == "approval"
        assert "rm -rf build$NONE" in asked.text
        assert (tmp_path / "work/build").exists() is left


async def test_an_approval_is_for_one_command_and_one_time(tmp_path):
    script = [Call("terminal", DANGEROUS, id="a"), Call("terminal", DANGEROUS, id="b"), Say("Done.")]
    async with place(tmp_path, script) as here:
        after = await here.tell("Clean up")
        for _ in range(2):
            asked = await here.until(Asked, after)
            await here.tell(here.inbound("once", answers=asked.event.question))
            after = asked.number
        await here.ended(after)

        assert [entry.event.kind for entry in await here.log()].count("asked") == 2


def judging(opinion):
    """A model that asks for a dangerous command, and gives its opinion where it is asked as the judge."""

    def script(heard):
        if heard.model == "judge":
            return opinion
        return Call("terminal", DANGEROUS) if heard.turn == 0 else Say("Done.")

    return script


SMART = "approvals:\n  mode: smart\nauxiliary:\n  judge:\n    model: custom/judge\n"


@pytest.mark.parametrize(("opinion", "left"), [("APPROVE", False), ("DENY", True)])
async def test_the_judge_decides_in_a_persons_place_and_is_paid_under_its_purpose(tmp_path, opinion, left):
    async with place(tmp_path, judging(Say(opinion)), more=SMART) as here:
        (tmp_path / "work/build").mkdir()
        ended = await here.say("Clean up")

        assert ended.text == "Done."
        assert (tmp_path / "work/build").exists() is left
        assert ("The auxiliary model refused it" in (await results(here))[0]) is left
        rows = await here.runtime.store.usage.rows(here.record.id)
        assert [(row.purpose, row.model, row.outcome) for row in rows] == [
            ("chat", "m", "ok"),
            ("judge", "judge", "ok"),
            ("chat", "m", "ok"),
        ]
        assert len({row.run for row in rows}) == 1


@pytest.mark.parametrize("opinion", [Say("ASK"), Say("Well, I do not know."), Status(400)])
async def test_where_the_judge_is_in_doubt_or_fails_the_person_decides(tmp_path, opinion):
    async with place(tmp_path, judging(opinion), more=SMART) as here:
        (tmp_path / "work/build").mkdir()
        after = await here.tell("Clean up")
        asked = (await here.until(Asked)).event
        await here.tell(here.inbound("once", answers=asked.question))
        await here.ended(after)

        assert not (tmp_path / "work/build").exists()


async def test_without_a_model_of_its_own_the_one_that_answers_judges(tmp_path):
    def script(heard):
        if "You judge" in heard.system:
            return Say("APPROVE")
        return Call("terminal", DANGEROUS) if heard.turn == 0 else Say("Done.")

    async with place(tmp_path, script, more="approvals:\n  mode: smart\n") as here:
        assert (await here.say("Clean up")).text == "Done."

        rows = await here.runtime.store.usage.rows(here.record.id)
        assert [(row.purpose, row.model) for row in rows] == [("chat", "m"), ("judge", "m"), ("chat", "m")]


async def test_where_nobody_is_there_it_is_refused(tmp_path):
    options = Options(attended=False)
    async with place(tmp_path, [Call("terminal", DANGEROUS), Say("Done.")], options) as here:
        (tmp_path / "work/build").mkdir()
        await here.say("Clean up")

        refused = json.loads((await results(here))[0])
        assert refused["kind"] == "unapproved"
        assert (tmp_path / "work/build").exists()


async def test_what_was_not_granted_is_refused_without_asking(tmp_path):
    options = Options(capabilities=("fs.read",))
    async with place(tmp_path, [Call("write_file", {"path": "a", "content": "b"}), Say("Done.")], options) as here:
        await here.say("Write")

        assert json.loads((await results(here))[0])["kind"] == "refused"
        assert not (tmp_path / "work/a").exists()


async def test_a_large_answer_is_shown_by_its_ends_and_kept_whole(tmp_path):
    def script(heard):
        return Call("search_files", {"pattern": "line", "limit": 5000}) if len(heard.messages) == 1 else Say("Done.")

    async with place(tmp_path, script, more="tool_output:\n  max_bytes: 2000\n") as here:
        (tmp_path / "work/a.txt").write_text("".join(f"line {number}\n" for number in range(900)))
        await here.say("Search")

        (shown,) = await results(here)
        assert len(shown.encode()) <= 2000
        assert "left out" in shown
        assert str(tmp_path / "home/cache") in shown


async def test_guidance_stands_behind_a_failure_that_repeats(tmp_path):
    script = [Call("read_file", {"path": "none"}, id=str(number)) for number in range(3)]
    async with place(tmp_path, [*script, Say("Done.")]) as here:
        await here.say("Read")

        found = await results(here)
        log = [entry.event for entry in await here.log() if isinstance(entry.event, ToolEnded)]
        guidance = log[1].message.parts[0].parts[-1]

        assert "failed 2 times" in found[1]
        assert "failed 1" not in found[0]
        assert guidance.origin == "runtime"


async def test_a_run_in_circles_is_stopped_and_can_go_on(tmp_path):
    script = [Call("read_file", {"path": "none"}, id=str(number)) for number in range(12)]
    more = "guardrails:\n  hard_stop: true\n  stop_tool_failures: 3\n"
    async with place(tmp_path, [*script, Say("Done.")], more=more) as here:
        ended = await here.say("Read")

        assert ended.outcome == "limit"
        assert ended.reason == "guardrail"
        assert "`read_file` failed 3 times in a row" in ended.text


async def test_a_repeat_is_answered_in_the_tools_place(tmp_path):
    script = [Call("read_file", {"path": "a"}, id=str(number)) for number in range(4)]
    more = "guardrails:\n  hard_stop: true\n  stop_same_results: 3\n"
    async with place(tmp_path, [*script, Say("Done.")], more=more) as here:
        (tmp_path / "work/a").write_text("x")
        await here.say("Read")

        assert "was not run again" in json.loads((await results(here))[-1].partition("\n[")[0])["error"]


async def test_the_question_carries_what_its_answer_is_bound_to(tmp_path):
    async with place(tmp_path, [Call("terminal", DANGEROUS, id="a"), Say("Done.")]) as here:
        after = await here.tell("Clean up")
        asked = await here.until(Asked, after)
        with pytest.raises(HermesError, match="Nothing waits"):
            await here.tell(here.inbound("once", answers="a.approval"))
        await here.tell(here.inbound("deny", answers=asked.event.question))
        await here.ended(asked.number)

        assert asked.event.question.startswith("a.approval.")
        assert "said no" in (await results(here))[0]


STRANGER = Principal(platform="telegram", user="7", standing=Standing.GUEST)
LOOK = {"command": "echo looked"}


async def test_a_strangers_words_in_the_owners_session_run_no_command(tmp_path):
    async with place(tmp_path, [Call("terminal", LOOK), Say("No.")]) as here:
        await here.say(replace(here.inbound("Look"), principal=STRANGER))

        refused = json.loads((await results(here))[0])
        assert refused["kind"] == "refused"
        assert "needs `exec`, which is not granted" in refused["error"]


async def test_after_a_strangers_run_the_owner_may_again(tmp_path):
    script = [Say("No."), Call("terminal", LOOK), Say("Done.")]
    async with place(tmp_path, script) as here:
        await here.say(replace(here.inbound("Look"), principal=STRANGER))
        await here.say("Look")

        assert "looked" in (await results(here))[0]


async def test_of_a_member_the_access_list_decides(tmp_path):
    async def looked(folder, standing, *, own=False) -> str:
        folder.mkdir()
        options = Options(standing=lambda key: standing if key == STRANGER.key else Standing.OWNER)
        async with place(folder, [Call("terminal", LOOK), Say("Done.")], options) as here:
            if own:
                chat, who = Conversation(platform="telegram", chat="7"), replace(STRANGER, standing=standing)
                here.record = await here.runtime.hermes.open_session(chat, who, workspace=str(folder / "work"))
            await here.say(replace(here.inbound("Look"), principal=STRANGER))
            return (await results(here))[0]

    assert "looked" in await looked(tmp_path / "a", Standing.MEMBER, own=True)
    assert "the workspace of the owner" in await looked(tmp_path / "c", Standing.MEMBER)
    assert "not granted" in await looked(tmp_path / "b", Standing.GUEST)


async def test_a_guest_allows_nothing_also_in_their_own_session(tmp_path):
    more = "tools:\n  guest:\n    enabled: [shell]\n"
    async with place(tmp_path, [Call("terminal", DANGEROUS), Say("Done.")], more=more) as here:
        chat = Conversation(platform="telegram", chat="7")
        here.record = await here.runtime.hermes.open_session(chat, STRANGER, workspace=str(tmp_path / "work"))
        after = await here.tell(replace(here.inbound("Clean up"), principal=STRANGER))
        asked = await here.until(Asked, after)
        theirs = replace(here.inbound("once", answers=asked.event.question), principal=STRANGER)
        with pytest.raises(HermesError, match="Guests cannot approve calls"):
            await here.tell(theirs)
        await here.tell(here.inbound("deny", answers=asked.event.question))
        await here.ended(asked.number)

        assert "said no" in (await results(here))[0]


async def test_an_approval_for_the_session_ends_where_the_shell_exports_another_path(tmp_path):
    script = [
        Call("terminal", DANGEROUS, id="a"),
        Call("terminal", {"command": "true"}, id="b"),
        Call("terminal", DANGEROUS, id="c"),
        Call("terminal", {"command": "export PATH=$PWD/bin:$PATH"}, id="d"),
        Call("terminal", DANGEROUS, id="e"),
        Say("Done."),
    ]
    async with place(tmp_path, script) as here:
        after = await here.tell("Clean up")
        asked = await here.until(Asked, after)
        await here.tell(here.inbound("session", answers=asked.event.question))
        again = await here.until(Asked, asked.number)
        await here.tell(here.inbound("deny", answers=again.event.question))
        await here.ended(again.number)

        assert again.event.question.startswith("e.approval.")


class Mail:
    """A tool that is not in the prompt."""

    def __init__(self) -> None:
        self.sent = []

    @tool(effect=Effect.WRITES, needs=(Capability.MESSAGE,), core=False)
    async def send_postcard(self, text: str) -> str:
        """Send a postcard."""
        self.sent.append(text)
        return "sent"


POSTCARD = {"name": "send_postcard", "arguments": {"text": "hi"}}


async def test_a_tool_behind_use_tool_is_judged_and_logged_as_itself(tmp_path):
    mail = Mail()
    script = [Call("use_tool", POSTCARD), Say("Done.")]
    async with place(tmp_path, script, Options(extra_tools=collect([mail])[0])) as here:
        await here.say("Write")

        named = {entry.event.tool for entry in await here.log() if isinstance(entry.event, ToolStarted | ToolEnded)}
        assert named == {"send_postcard"}
        assert mail.sent == ["hi"]


@pytest.mark.parametrize("options", [{"capabilities": ("fs.read",)}, {"more": "approvals:\n  deny: [send_postcard]\n"}])
async def test_a_tool_behind_use_tool_is_refused_as_itself(tmp_path, options):
    mail, more = Mail(), options.get("more", "")
    script = [Call("use_tool", POSTCARD), Say("Done.")]
    async with place(
        tmp_path, script, Options(extra_tools=collect([mail])[0], capabilities=options.get("capabilities")), more=more
    ) as here:
        await here.say("Write")

        assert json.loads((await results(here))[0])["kind"] == "refused"
        assert mail.sent == []


async def test_a_secret_is_in_no_log_event_or_request(tmp_path):
    value = "hunter2-hunter2-hunter2"
    script = [Call("terminal", {"command": 'printf %s "${secret:MY_TOKEN}"'}), Say("Done.")]
    more = "secrets:\n  MY_TOKEN:\n    commands: ['printf*']\n"
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.env").write_text(f"MY_TOKEN={value}\n")
    (tmp_path / "home/.env").chmod(0o600)
    async with place(tmp_path, script, more=more) as here:
        await here.say("Print it")

        assert "[secret MY_TOKEN]" in (await results(here))[0]
        assert value not in repr(await here.log())
        assert not any(value.encode() in exchange.request.body for exchange in here.server.exchanges)
    kept = [path for path in (tmp_path / "home").rglob("*") if path.is_file() and value.encode() in path.read_bytes()]
    assert [path.name for path in kept if path.name not in (".env", "out")] == []


def write(name: str, content: str, call: str) -> Call:
    return Call("write_file", {"path": name, "content": content}, id=call)


async def test_the_folder_is_kept_once_a_turn_and_rolled_back_by_a_command(tmp_path: Path):
    script = [write("new.txt", "one", "a"), write("new.txt", "two", "b"), Say("Done.")]
    async with place(tmp_path, script) as here:
        work = Path(here.record.workspace)
        (work / "own.txt").write_text("mine")
        await here.say("Write")
        listed = await here.type("/rollback")
        changed = await here.type("/rollback diff 1")
        back = await here.type("/rollback 1")

        assert listed is not None
        assert len(listed.text.splitlines()) == 2
        assert "before write_file: new.txt" in listed.text
        assert changed is not None
        assert "+two" in changed.text
        assert back is not None
        assert "new.txt (removed)" in back.text
        assert not (work / "new.txt").exists()
        assert (work / "own.txt").read_text() == "mine"

        await here.type("/rollback 3")
        assert (work / "new.txt").read_text() == "two"


async def test_reading_takes_none(tmp_path: Path):
    async with place(tmp_path, [Call("search_files", {"pattern": "x"}), Say("Done.")]) as here:
        await here.say("Look")
        listed = await here.type("/rollback")

        assert listed is not None
        assert listed.text == "No checkpoint of this folder was taken yet."


async def test_a_rollback_that_cannot_be_is_told(tmp_path: Path):
    async with place(tmp_path, [Say("Done.")]) as here:
        for line, words in {"/rollback x": "Say `/rollback`", "/rollback 3": "no checkpoints of"}.items():
            with pytest.raises(HermesError, match=words):
                await here.type(line)


async def test_a_person_who_waits_for_a_checkpoint_is_told_for_what(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    tools = collect([ShellTools(place=FakePlace(), settings=TerminalSettings())])[0]
    shell = {each.schema.name: each for each in tools}["terminal"]
    context, arguments = Context(workspace=str(work)), {"command": "make"}
    checkpoints = Checkpoints(tmp_path / "kept", CheckpointSettings(), FakeClock())
    hook = CheckpointHook(checkpoints=checkpoints, person=Path("/nobody"), patience=0)

    await hook.before_call(
        Proposed(
            call=ToolCall(id="a", name="terminal", arguments=arguments),
            tool=shell,
            arguments=arguments,
            facts=shell.facts(arguments, str(work)),
            context=context,
        )
    )

    assert context.lines == ["saving a checkpoint of the folder"]
    assert [each.number for each in await checkpoints.of(work)] == [1]
