"""Hooks, listed and allowed by their owner alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.app.operations.access import open_offline
from hermes_agent.app.operations.hooks import allow_hook, list_hooks, revoke_hook
from hermes_agent.app.settings import Settings
from hermes_agent.core.chat import Standing
from hermes_agent.core.errors import ConfigError, HermesError
from hermes_agent.host.config import load
from hermes_agent.host.paths import Home


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
