"""Tools of real MCP servers over their pipes, behind the wall."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import OutcomeUnknown, ToolError
from hermes_agent.core.messages import Origin
from hermes_agent.tools.mcp.settings import McpToolFilter
from hermes_agent.tools.surfaces import SurfaceTools
from tests.app.mcp.calling import MODERN, Calling, calling, plain


async def test_tools_of_a_server_are_found_and_called(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain()}) as call:
        answer = await call.answer("mcp__fix__add", a=2, b=3)

        assert [(part.text, part.origin) for part in answer.parts] == [("5", Origin.TOOL)]
        assert {"mcp__fix__slow", "mcp_resource", "mcp_prompt"} <= call.tools().keys()


async def test_what_a_server_offered_is_known_without_asking_it(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain()}):
        pass

    async with calling(tmp_path, {"fix": plain()}, look=False) as call:
        assert "mcp__fix__add" in call.tools()
        assert not call.source.servers._places


async def test_every_call_counts_as_writing_unless_the_owner_says_otherwise(tmp_path: Path):
    servers = {"plain": plain(), "hints": plain(trust="hints"), "own": plain(effects={"pid": "reads"})}
    async with calling(tmp_path, servers) as call:
        effects = {name: tool.facts({}, "/").effect for name, tool in call.tools().items() if name.startswith("mcp__")}

    assert effects["mcp__plain__add"] is Effect.WRITES
    assert (effects["mcp__hints__add"], effects["mcp__hints__pid"]) == (Effect.READS, Effect.WRITES)
    assert (effects["mcp__own__pid"], effects["mcp__own__add"]) == (Effect.READS, Effect.WRITES)


async def test_a_server_is_behind_the_wall(tmp_path: Path):
    (tmp_path / "secret").write_text("s3cret")
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.env").write_text("KEY=value-of-the-key")
    async with calling(tmp_path, {"fix": plain()}) as call:
        (call.workspace / "mine").write_text("mine")

        assert await call("mcp__fix__see", path=str(call.workspace / "mine")) == "mine"
        for path in (tmp_path / "home/.env", tmp_path / "home/logs/hermes.log"):
            answer = await call.answer("mcp__fix__see", path=str(path))
            assert answer.is_error


async def test_a_server_sees_the_variables_that_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    monkeypatch.setenv("OWN_TOKEN", "t-1234567890")
    async with calling(tmp_path, {"fix": plain(env={"TOKEN": "${secret:OWN_TOKEN}"})}) as call:
        assert await call("mcp__fix__variable", name="OPENAI_API_KEY") == "(none)"
        assert await call("mcp__fix__variable", name="TOKEN") == "t-1234567890"


async def test_a_missing_secret_is_a_sentence(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain(env={"TOKEN": "${secret:NOT_THERE}"})}) as call:
        with pytest.raises(ToolError, match="There is no secret NOT_THERE: `hermes secrets set NOT_THERE`"):
            await call("mcp_resource", action="list", server="fix")


async def test_a_form_of_a_server_is_asked_of_the_person(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain()}) as call:
        context = call.context(answers=['{"name": "Ann", "age": 9}'])

        said = json.loads(await call("mcp__fix__who", context))
        assert said == {"action": "accept", "content": {"name": "Ann", "age": 9}}

        (question,) = context.asked
        assert question.text == "The MCP server fix asks: Who are you?"
        assert [(field.name, field.type, field.default, field.required) for field in question.fields] == [
            ("name", "text", "", True),
            ("age", "integer", "7", False),
        ]


async def test_where_nobody_is_there_a_form_is_declined(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain()}) as call:
        assert json.loads(await call("mcp__fix__who")) == {"action": "decline"}


async def test_progress_is_shown(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain()}) as call:
        context = call.context()

        assert await call("mcp__fix__slow", context, seconds=0.2) == "done"

        assert context.lines[1:3] == ["1 of 10: waiting", "2 of 10: waiting"]


async def test_resources_and_prompts_are_read(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain()}) as call:
        assert '"uri": "note://one"' in await call("mcp_resource", action="list", server="fix")
        assert await call("mcp_resource", action="read", server="fix", uri="note://one") == "the note"
        assert '"name": "greet"' in await call("mcp_prompt", server="fix")
        assert await call("mcp_prompt", server="fix", name="greet", arguments={"name": "Ann"}) == "Say hello to Ann."


async def test_a_failure_of_a_tool_is_an_answer(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain()}) as call:
        answer = await call.answer("mcp__fix__fail")

        assert answer.is_error
        assert "it is broken" in answer.parts[0].text


async def test_a_tool_that_came_later_is_found(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain()}) as call:
        changed = asyncio.Event()
        await call("mcp__fix__more")
        call.source.subscribe(changed.set)
        async with asyncio.timeout(10):
            while "mcp__fix__later" not in call.tools():
                await changed.wait()
                changed.clear()

        assert await call("mcp__fix__later") == "later"


async def test_a_server_that_dies_during_a_write_leaves_the_outcome_unknown(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain()}) as call:
        with pytest.raises(OutcomeUnknown, match=r"went away during the call.*look before you try again"):
            await call("mcp__fix__die")

        assert await call("mcp__fix__add", a=1, b=1) == "2"


async def killed_between(call: Calling, times: int) -> None:
    assert await call("mcp__fix__add", a=1, b=1) == "2"
    for _ in range(times):
        before = call.processes("fix")
        assert before
        for number in before:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        while call.processes("fix"):
            await asyncio.sleep(0.01)
        assert await call("mcp__fix__add", a=1, b=1) == "2"


async def test_a_server_killed_between_calls_is_started_again(tmp_path: Path, full: bool):
    async with calling(tmp_path, {"fix": plain()}) as call:
        await killed_between(call, 100 if full else 3)


async def test_a_stop_ends_a_server_that_does_not_listen(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain()}) as call:
        context, loop = call.context(), asyncio.get_running_loop()
        running = loop.create_task(call("mcp__fix__slow", context, seconds=300.0))
        while not context.lines:
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        began = loop.time()
        while call.processes("fix"):
            await asyncio.sleep(0.05)

        assert loop.time() - began < 4.5
        assert await call("mcp__fix__add", a=1, b=1) == "2"


async def test_a_server_of_the_newer_protocol_is_called_and_asks(tmp_path: Path):
    async with calling(tmp_path, {"new": plain(MODERN)}) as call:
        assert call.source.servers.known["new"].link.version == "2026-07-28"
        assert await call("mcp__new__add", a=2, b=3) == "5"
        context = call.context(answers=['{"name": "Ann"}'])
        assert await call("mcp__new__who", context) == "accept name='Ann' age=7"
        assert await call("mcp__new__who") == "decline None"
        assert await call("mcp_resource", action="read", server="new", uri="note://one") == "the note"
        await call("mcp__new__more")
        async with asyncio.timeout(10):
            while "mcp__new__later" not in call.tools():
                await asyncio.sleep(0.01)


async def test_a_call_that_takes_too_long_is_given_up(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain(timeout=1.0)}) as call:
        with pytest.raises(OutcomeUnknown, match=r"did not answer in time"):
            await call("mcp__fix__slow", seconds=30.0)


async def test_a_dead_server_costs_its_own_calls_alone(tmp_path: Path):
    dead = plain(command="/does/not/exist")
    async with calling(tmp_path, {"dead": dead, "fix": plain()}) as call:
        assert await call("mcp__fix__add", a=1, b=1) == "2"
        with pytest.raises(ToolError, match=r"dead .*tried again in .*`hermes mcp test dead`"):
            await call("mcp_resource", action="list", server="dead")


async def test_one_bad_tool_is_quarantined_alone(tmp_path: Path):
    deep: dict = {"type": "object"}
    for _ in range(60):
        deep = {"type": "object", "properties": {"in": deep}}
    hostile = [
        "no tool",
        {"name": "no_schema"},
        {"name": "text", "inputSchema": "text"},
        {"name": "list", "inputSchema": {"type": "array"}},
        {"name": "deep", "inputSchema": deep},
        {"name": "elsewhere", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "http://x.test/s"}}}},
        {"name": "control\u001b[31m", "inputSchema": {"type": "object"}},
        {"name": "big", "inputSchema": {"type": "object", "description": "x" * 200_000}},
        {"name": "twice", "inputSchema": {"type": "object"}},
        {"name": "twice", "inputSchema": {"type": "object", "properties": {"b": {}}}},
        {"name": "L" * 100, "inputSchema": {"type": "object"}},
    ]
    (tmp_path / "work").mkdir()
    (tmp_path / "work/hostile.json").write_text(json.dumps(hostile))
    async with calling(tmp_path, {"fix": plain(env={"HOSTILE": "hostile.json"})}) as call:
        quarantined = {each.name: each.reason for each in call.source.quarantined}

        assert len(quarantined) == 9
        assert quarantined["mcp__fix__elsewhere"] == "its parameters refer to `http://x.test/s`, which is elsewhere"
        assert quarantined["mcp__fix__twice"] == "another tool of this server has the same name"
        assert "mcp__fix__twice" in call.tools()
        assert all(len(name) <= 64 for name in call.tools())
        assert await call("mcp__fix__add", a=1, b=1) == "2"


@pytest.mark.parametrize(
    ("tool", "said"),
    [("noise", "noise"), ("burst", "burst"), ("wrong_id", "wrong_id"), ("many", "many"), ("rename", "rename")],
)
async def test_a_server_that_talks_nonsense_goes_on(tmp_path: Path, tool: str, said: str):
    async with calling(tmp_path, {"fix": plain()}) as call:
        assert await call(f"mcp__fix__{tool}") == said
        assert await call("mcp_resource", action="read", server="fix", uri="note://one") == "the note"


@pytest.mark.parametrize(
    ("tool", "error", "why"),
    [
        ("invalid", ToolError, "fix answered what its schema does not allow"),
        ("structured", ToolError, "fix answered what its schema does not allow"),
        ("huge", ToolError, "The answer is longer than 16 MB"),
    ],
)
async def test_an_answer_that_cannot_be_taken_is_a_sentence(tmp_path: Path, tool: str, error: type, why: str):
    async with calling(tmp_path, {"fix": plain()}) as call:
        with pytest.raises(error, match=why):
            await call(f"mcp__fix__{tool}", size=17 << 20)

        assert await call("mcp__fix__add", a=1, b=1) == "2"


async def test_a_large_answer_arrives_whole(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain()}) as call:
        assert len(await call("mcp__fix__huge", size=3 << 20)) == 3 << 20


async def test_an_address_is_shown_and_opened_by_the_person_alone(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain()}) as call:
        context = call.context(answers=["opened"])
        said = json.loads(await call("mcp__fix__page", context, url="https://pay.test/x"))
        assert said == {"action": "accept"}
        assert "open a page of pay.test: Pay\nhttps://pay.test/x\n" in context.asked[0].text

        for url in ("http://pay.test/x", "javascript:alert(1)", "https://pay.test/\u202ex"):
            assert json.loads(await call("mcp__fix__page", call.context(answers=["opened"]), url=url)) == {
                "action": "decline"
            }


async def test_the_workspace_is_the_only_root(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain(), "none": plain(roots=False)}) as call:
        assert json.loads(await call("mcp__fix__roots"))["roots"] == [{"uri": call.workspace.as_uri(), "name": "work"}]
        assert "roots" not in json.loads(await call("mcp__none__roots"))


async def test_an_unknown_version_of_the_protocol_names_both(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain(env={"SPEAKS": "1999-01-01"})}) as call:
        with pytest.raises(ToolError, match=r"none of our versions .*2025-11-25, 2026-07-28.*1999-01-01"):
            await call("mcp_resource", action="list", server="fix")


async def test_a_server_that_hangs_costs_its_own_time_alone(tmp_path: Path):
    hangs = plain(command="/bin/sleep", args=("60",), connect_timeout=0.5)
    async with calling(tmp_path, {"hangs": hangs, "fix": plain()}) as call:
        with pytest.raises(ToolError, match=r"did not answer within 0.5 s"):
            await call("mcp_resource", action="list", server="hangs")
        assert await call("mcp__fix__add", a=1, b=1) == "2"
        assert call.processes("hangs") == []


async def test_tools_are_included_and_excluded_by_globs(tmp_path: Path):
    tools = McpToolFilter(include=("a*", "pid"), exclude=("pid",))
    async with calling(tmp_path, {"fix": plain(tools=tools)}) as call:
        assert [name for name in call.tools() if name.startswith("mcp__")] == ["mcp__fix__add"]


async def test_a_server_that_nobody_uses_ends_and_comes_back(tmp_path: Path):
    async with calling(tmp_path, {"fix": plain(idle=0.3)}) as call:
        assert await call("mcp__fix__slow", seconds=0.6) == "done"
        assert call.processes("fix")
        async with asyncio.timeout(10):
            while call.processes("fix"):
                await asyncio.sleep(0.05)

        assert await call("mcp__fix__add", a=1, b=1) == "2"


async def test_a_server_is_a_toolset_of_its_own(tmp_path: Path):
    async with calling(tmp_path, {"a": plain(), "b": plain()}) as call:
        source = call.source

        def servers(*narrowed: str) -> set[str]:
            return {
                tool.schema.name.split("__")[1] for tool in source.tools("cli", narrowed) if "__" in tool.schema.name
            }

        found = [servers(), servers("mcp"), servers("files", "mcp:a"), servers("files")]
        source.settings = replace(source.settings, tools={"cli": SurfaceTools(disabled=("mcp:b",))})
        off = [servers(), servers("mcp:b")]

    assert found == [{"a", "b"}, {"a", "b"}, {"a"}, set()]
    assert off == [{"a"}, set()]


async def test_a_server_that_never_answered_delays_the_first_search_alone(tmp_path: Path):
    args = ("-c", "import time; time.sleep(60)")
    async with calling(tmp_path, {"deaf": plain(args=args, connect_timeout=0.2)}, look=False) as call:
        await call.source.look(str(call.workspace))
    async with calling(tmp_path, {"deaf": plain(args=args)}, look=False) as call:
        began = time.monotonic()
        await call.source.look(str(call.workspace))
        took = time.monotonic() - began

    assert took < 1


@pytest.mark.parametrize("own", [False, True])
async def test_sessions_share_a_program_unless_each_has_its_own(tmp_path: Path, own: bool):
    async with calling(tmp_path, {"fix": plain(per_session=own)}) as call:
        found = [
            await call("mcp__fix__variable", call.context(session=f"s{number}"), name="HERMES_EXEC")
            for number in (1, 2, 1)
        ]

    assert found[0] == found[2]
    assert (found[0] != found[1]) is own
