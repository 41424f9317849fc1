"""What was allowed for good is listed and withdrawn, by its owner."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.approvals import list_approvals, withdraw_approval
from hermes_agent.core.chat import Standing
from hermes_agent.core.errors import HermesError
from hermes_agent.testing.clock import FakeClock
from hermes_agent.tools.permission.remembered import RememberedFile
from tests.app.place import place
from tests.cli.shell import typed


async def test_an_approval_is_listed_and_withdrawn(tmp_path: Path) -> None:
    async with place(tmp_path, []) as here:
        kept = RememberedFile(tmp_path / "home/approvals.yaml", FakeClock())
        await kept.add("abcdef12", tool="terminal", what="git push *", folder="/w", program="/bin/git 1")
        owner = Access(system=here.runtime, who=here.runtime.owner)

        (found,) = await list_approvals(owner)
        assert str(found).endswith("terminal: git push *  in /w  by /bin/git")
        with pytest.raises(HermesError, match="No approval is called x"):
            await withdraw_approval(owner, "x")
        assert await withdraw_approval(owner, found.id) == "Withdrawn: git push *. It is asked about again."
        assert await list_approvals(owner) == []
        assert "Nothing is allowed for good." in await here.text("/approvals list")
        with pytest.raises(HermesError, match="Only the owner"):
            await list_approvals(replace(owner, who=replace(owner.who, standing=Standing.MEMBER)))


def test_the_command_prints_them_as_json(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/approvals.yaml").write_text("- {key: k1, tool: terminal, what: make, folder: /w, when: 1.0}\n")

    assert [row["what"] for row in json.loads(typed(tmp_path / "home", "approvals", "list", "--json").out)] == ["make"]
    assert typed(tmp_path / "home", "approvals", "withdraw", "k1").out == "Withdrawn: make. It is asked about again.\n"
    said = typed(tmp_path / "home", "approvals", "list")
    assert "Nothing is allowed for good." in said.out + said.err
