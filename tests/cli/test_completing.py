"""Shell completion of names: what the shell would offer behind a line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from hermes_agent.app.opening import open_system
from hermes_agent.cli.completing import FITTING, SOURCES, Known
from hermes_agent.cli.group import hermes
from hermes_agent.cli.surface import Surface
from hermes_agent.core.chat import Conversation
from hermes_agent.host.paths import find_home
from tests.cli.shell import every_leaf, typed
from tests.skills.shelf import put

FREE = {
    "address answer code command goals name learn name mcp configure setting value message prompt schedule setting "
    "status summary text title value why words kanban boards name slots",
}
"""Arguments for which a person has words of their own."""


def offered(home: Path, line: str, start: str = "") -> list[str]:
    surface = Surface(variables={"HERMES_HOME": str(home)})
    complete = ShellComplete(hermes, {"obj": surface}, "hermes", "_HERMES_COMPLETE")
    return [item.value for item in complete.get_completions(line.split(), start)]


async def said_in(home: Path, title: str) -> str:
    async with open_system(find_home(variables={"HERMES_HOME": str(home)}).ensure()) as system:
        where = Conversation(platform="cli", chat_kind="folder", chat=str(home))
        session = await system.hermes.open_session(where, system.owner, workspace=str(home), new=True)
        await system.hermes.rename(session.id, title)
        return session.id


def test_a_session_is_offered_by_its_id_and_by_a_word_of_its_title(tmp_path: Path) -> None:
    session = asyncio.run(said_in(tmp_path, "Fix the parser"))

    assert offered(tmp_path, "sessions show") == [session]
    assert offered(tmp_path, "sessions show", "parser") == [session]
    assert offered(tmp_path, "-r", session[:4]) == [session]
    assert offered(tmp_path, "logs --session", "parser") == [session]
    assert offered(tmp_path, "sessions show", "another") == []


def test_models_vendors_settings_channels_and_toolsets_are_offered(tmp_path: Path) -> None:
    assert offered(tmp_path, "model set", "deepseek/deepseek-v4-f") == ["deepseek/deepseek-v4-flash"]
    assert "zai" in offered(tmp_path, "-m", "za")
    assert offered(tmp_path, "config set", "agent.max_t") == ["agent.max_turns"]
    assert offered(tmp_path, "gateway setup", "tel") == ["telegram"]
    assert offered(tmp_path, "tools enable", "we") == ["web"]
    assert offered(tmp_path, "login", "op") == ["openai-codex"]
    assert "telegram" in offered(tmp_path, "tools list --surface", "tel")


def test_skills_people_jobs_secrets_and_servers_are_offered_from_the_home(tmp_path: Path) -> None:
    put(tmp_path / "skills", "mine")
    typed(tmp_path, "config", "set", "gateway.channels.telegram.owners", "[4711]")
    typed(tmp_path, "cron", "add", "every day at 09:00", "Sum up my mail.", "--name", "mail")
    typed(tmp_path, "secrets", "set", "GITHUB_TOKEN", stdin="secret\n")
    typed(tmp_path, "config", "set", "mcp_servers.files.command", "cat")

    assert offered(tmp_path, "skills pin", "mi") == ["mine"]
    assert offered(tmp_path, "pairing revoke telegram") == ["4711"]
    assert offered(tmp_path, "cron show", "mail") == [job["id"] for job in jobs(tmp_path)]
    assert offered(tmp_path, "secrets allow", "GI") == ["GITHUB_TOKEN"]
    assert offered(tmp_path, "mcp show", "") == ["files"]


def test_goals_lessons_and_channels_are_offered(tmp_path: Path) -> None:
    skill = put(tmp_path / "skills", "mine")
    typed(tmp_path, "goals", "add", "Mend the parser.", "--command", "false", "--later")
    (skill / "SKILL.md").write_text((skill / "SKILL.md").read_text() + "Changed outside.\n")
    goal = json.loads(typed(tmp_path, "goals", "list", "--json").out)[0]["id"]
    rows = [row["id"] for row in json.loads(typed(tmp_path, "learn", "log", "--json").out)]

    assert offered(tmp_path, "goals show", "parser") == [goal]
    assert rows
    assert offered(tmp_path, "learn show") == rows
    assert offered(tmp_path, "learn adopt", "mi") == ["mine"]
    assert offered(tmp_path, "send -t", "tele") == ["telegram"]


def jobs(home: Path) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(typed(home, "cron", "list", "--json").out)
    return found


@pytest.mark.parametrize("source", SOURCES)
def test_an_empty_home_and_a_broken_one_offer_no_error(tmp_path: Path, source: str) -> None:
    context = click.Context(hermes, obj=Surface(variables={"HERMES_HOME": str(tmp_path)}))
    for _ in range(2):
        found = Known(source).shell_complete(context, click.Option(["--x"]), "no such name")
        assert found == []
        (tmp_path / "config.yaml").write_text("modle: 1")


def test_every_argument_is_completed_or_free_words() -> None:
    free = set(" ".join(FREE).split())
    for path, command in every_leaf():
        for param in command.params:
            if isinstance(param, click.Argument) and param.type is click.STRING:
                assert param.name in free, f"{path} {param.name}"
    assert set(FITTING.values()) <= {*SOURCES, "files"}
