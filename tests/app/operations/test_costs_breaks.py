"""`hermes cost --breaks`."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

from hermes_agent.store.database import open_store
from tests.cli.shell import typed
from tests.store.test_breaks import ROW, entered


def test_breaks_are_shown_with_what_changed(tmp_path: Path) -> None:
    async def fill() -> None:
        store = await open_store(tmp_path / "hermes.db")
        await entered(store, (ROW, 5_000, 4_000), (replace(ROW, credential="K2"), 5_000, 0))
        await store.close()

    asyncio.run(fill())

    line = typed(tmp_path, "cost", "--breaks").out.splitlines()[1]
    assert "openai/gpt" in line
    assert line.endswith("key (K1 to K2)")
    (found,) = json.loads(typed(tmp_path, "cost", "--breaks", "--json").out)
    assert (found["expected"], found["cached"]) == (5_000, 0)


def test_without_breaks_it_says_so(tmp_path: Path) -> None:
    assert "No cache was broken" in typed(tmp_path, "cost", "--breaks").err
