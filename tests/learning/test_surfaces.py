"""Conversations are counted and reviewed on every surface, and a review has no other tools, whoever brought them."""

import logging
from pathlib import Path

import pytest

from hermes_agent.app.opening import Options
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.events import Outcome, ToolStarted
from hermes_agent.core.messages import ToolResult
from hermes_agent.core.tool import tool
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.store.learning.jobs import JobKind, JobState
from hermes_agent.testing.faults import Hang
from hermes_agent.tools.schema import collect
from tests.api.served import served
from tests.gateway.harness import eventually, harness
from tests.learning.harness import SOON, Script, learning_place, looks, note, reviewed, skill


class Foreign:
    """Five tools of a server that is none of ours."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def _did(self, what: str) -> str:
        with self.file.open("a") as file:
            file.write(f"{what}\n")
        return f"Did {what}."

    @tool(effect=Effect.WRITES, needs=(Capability.NET,))
    async def mcp_mail_send(self, to: str) -> str:
        """Send a mail."""
        return self._did(f"mail {to}")

    @tool(effect=Effect.WRITES, needs=(Capability.FS_WRITE,))
    async def mcp_disk_write(self, path: str) -> str:
        """Write a file."""
        return self._did(f"write {path}")

    @tool(effect=Effect.WRITES, needs=(Capability.EXEC,))
    async def mcp_shell_run(self, command: str) -> str:
        """Run a command."""
        return self._did(f"run {command}")

    @tool(effect=Effect.READS, needs=(Capability.NET,))
    async def mcp_web_get(self, url: str) -> str:
        """Get a page."""
        return self._did(f"get {url}")

    @tool(effect=Effect.WRITES, needs=(Capability.SKILLS,))
    async def mcp_skill_manage(self, name: str) -> str:
        """Change a skill of another system."""
        return self._did(f"skill {name}")


CALLS = [
    ("mcp_mail_send", {"to": "a@b.example"}),
    ("mcp_disk_write", {"path": "x"}),
    ("mcp_shell_run", {"command": "id"}),
    ("mcp_web_get", {"url": "http://127.0.0.1/"}),
    ("mcp_skill_manage", {"name": "x"}),
]


async def test_five_tools_of_others_work_in_the_conversation_and_are_refused_in_its_review(tmp_path, caplog):
    done = tmp_path / "done.txt"
    direct = [Call(name, arguments) for name, arguments in CALLS]
    found = [Call("use_tool", {"name": name, "arguments": arguments}) for name, arguments in CALLS]
    escapes = [
        Call("skill_manage", {"action": "write_file", "name": "own", "file": file, "content": "x"})
        for file in (
            "../../../escaped",
            "references/../../../escaped",
            "/tmp/escaped",
            "references/\x00x",
            "SKILL.md/x",
        )
    ]
    script = Script(
        [found[3], *looks(2)],
        clean=[[skill("own", "Step one."), *escapes, *direct, *found], Say("That is all.")],
    )
    options = Options(reviews=False, extra_tools=collect([Foreign(done)])[0])
    async with learning_place(tmp_path, script, more=SOON + "learning:\n  raw_pass: false\n", options=options) as here:
        await here.say("Get the page, and look around")
        log = logging.getLogger("hermes_agent")
        log.addHandler(caplog.handler)
        with caplog.at_level(logging.WARNING):
            (job,) = [each for each in await reviewed(here) if each.kind is JobKind.REVIEW]
        log.removeHandler(caplog.handler)
        answers = [p for m in script.reviews[-1].messages[-16:] for p in m.parts if isinstance(p, ToolResult)]
        written = await here.runtime.store.versions.list()

    assert done.read_text() == "get http://127.0.0.1/\n"
    assert job.account.refused == 10
    assert sum("refused a call of" in record.message for record in caplog.records) == 10
    assert len(answers) == 16
    assert [answer.text for answer in answers[6:] if '"error"' not in answer.text] == []
    assert written == []
    assert not list(tmp_path.rglob("escaped"))


async def test_a_run_that_was_stopped_starts_no_review(tmp_path):
    script = Script([*looks(5)[:4], Hang()])
    async with learning_place(tmp_path, script) as here:
        after = await here.tell("Look around")
        async for seen in here.runtime.hermes.follow(here.record.id, after):
            if isinstance(seen.event, ToolStarted) and len(here.server.exchanges) >= 4:
                break
        assert await here.runtime.hermes.stop(here.record.id)
        assert (await here.ended(after)).outcome is Outcome.STOPPED
        assert await reviewed(here) == []
        rounds, _ = await here.runtime.store.pace.counted(here.record.id)
    assert rounds >= 3


async def test_a_conversation_over_the_api_is_reviewed(tmp_path):
    script = Script(looks(3), clean=[[note("The person drinks tea.", "user")], Say("Kept.")])
    async with served(tmp_path, script, more=SOON) as server:
        assert (await server.chat("I drink tea")).status_code == 200
        await server.runtime.learner.run()
        (job,) = await server.runtime.store.learning.list(JobKind.REVIEW)
    assert (job.state, job.account.kept) == (JobState.DONE, 1)


async def test_a_conversation_in_a_chat_is_reviewed_beside_it_and_told_of_there(tmp_path):
    script = Script(looks(3), clean=[skill("tea", "Boil the water."), Say("Kept.")])
    async with harness(tmp_path, script, more=SOON) as gateway:
        await gateway.platform.say("Make tea", user="7", chat="1")
        await eventually(lambda: len(gateway.platform.chats.of("1")) == 2)
        reply, told = (shown.text for shown in gateway.platform.chats.of("1"))
        assert (reply, told) == ("It is done.", "Learned: skill `tea`: create (undo: /learn undo 1).")
        (job,) = await gateway.store.learning.list(JobKind.REVIEW)
        assert job.state is JobState.DONE
        assert "is undone" in await gateway.ask("/learn undo 1")
        assert not list((tmp_path / "home/skills").glob("tea/SKILL.md"))


@pytest.mark.parametrize("mode", ["auto", "propose"])
async def test_the_prefix_is_the_same_whatever_learning_does(tmp_path, mode: str):
    prefixes = []
    for number, more in enumerate((f"learning:\n  mode: {mode}\n", "learning:\n  mode: 'off'\n")):
        async with learning_place(tmp_path / str(number), Script(looks(1)), more=SOON + more) as here:
            await here.say("Look")
            body = here.server.exchanges[0].body
            prefixes.append((body["tools"], body["messages"][0]["content"].replace(f"/{number}/", "/n/")))
    assert prefixes[0] == prefixes[1]
