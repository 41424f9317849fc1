"""Operations on what the owner trusts: folders, in words, and hooks; for the owner alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.app.folder_trust import NOTHING, News
from hermes_agent.app.operations.access import open_offline
from hermes_agent.app.operations.trust import allow_hook, list_hooks, revoke_hook
from hermes_agent.app.settings import Settings
from hermes_agent.core.chat import Standing
from hermes_agent.core.errors import ConfigError, HermesError
from hermes_agent.host.config import load
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Say
from tests.app.place import place


async def test_a_folder_is_shown_trusted_listed_and_withdrawn(tmp_path: Path):
    async with place(tmp_path, [Say("Hello.")]) as here:
        (tmp_path / "work/AGENTS.md").write_text("Use tabs.\n")
        work = str(tmp_path / "work")
        assert "AGENTS.md:\nUse tabs." in await here.text("/trust")
        assert f"{work} is trusted." in await here.text("/trust add")
        assert "is trusted as it is" in await here.text("/trust show")
        assert work in await here.text("/trust list")
        assert "no longer trusted" in await here.text(f"/trust withdraw {work}")
        assert "No folder is trusted." in await here.text("/trust list")
        assert "is trusted." in await here.text("/trust once")
        with pytest.raises(HermesError, match="too wide"):
            await here.text("/trust add /")
        with pytest.raises(HermesError, match="not a folder"):
            await here.text("/trust add /nowhere/at/all")
        assert "too wide" in await here.text("/trust show /")


def test_the_question_is_one_line_that_names_what_speaks():
    news = News(root=Path("/w"), files=dict.fromkeys(("a", "b", "c", "d"), ""), findings=("a: odd",))
    assert news.notice.text.startswith("Do you trust the files of /w? a, b, c and 1 other")
    assert "a: odd" in news.notice.text
    assert NOTHING in News(root=Path("/w"), files={}).notice.text


async def test_the_owner_allows_a_hook_and_takes_it_back_and_nobody_else(tmp_path: Path) -> None:
    home = Home(root=tmp_path, base=tmp_path).ensure()
    home.config_file.write_text("hooks:\n  a:\n    on: [run:end]\n    command: 'true'\n")
    async with open_offline(home, load(home, Settings)) as access:
        assert await allow_hook(access, "a") == "a may run: true"
        assert [(each.name, each.allowed) for each in await list_hooks(access)] == [("a", True)]
        assert "no longer allowed" in await revoke_hook(access, "a")
        with pytest.raises(ConfigError, match="There are: a"):
            await allow_hook(access, "b")

        member = replace(access, who=replace(access.who, standing=Standing.MEMBER))
        for refused in (list_hooks(member), allow_hook(member, "a"), revoke_hook(member, "a")):
            with pytest.raises(HermesError, match="Only the owner"):
                await refused
