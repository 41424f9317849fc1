"""`/rollback` is understood or says what to type."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.providers.demo.script import Call, Say
from tests.app.place import place


async def test_one_file_is_put_back(tmp_path: Path):
    async with place(tmp_path, [Call("write_file", {"path": "a", "content": "x"}), Say("Done.")]) as here:
        await here.say("Write")

        assert (
            await here.text("/rollback 1 a")
            == "Restored checkpoint 1:\n  a (removed)\nTo undo this, restore checkpoint 2."
        )
        assert await here.text("/rollback diff 1") == "Nothing changed since checkpoint 1."


@pytest.mark.parametrize("line", ["/rollback x", "/rollback diff", "/rollback diff x", "/rollback -1"])
async def test_what_is_no_number_is_told_how_to_say_it(tmp_path: Path, line: str):
    async with place(tmp_path, [Say("Done.")]) as here:
        with pytest.raises(HermesError, match="Say `/rollback`"):
            await here.text(line)
