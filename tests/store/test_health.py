"""What a database says of itself."""

from __future__ import annotations

from pathlib import Path

from hermes_agent.store.database import open_store
from hermes_agent.store.health import Health, examine


async def health_of(path: Path) -> Health:
    store = await open_store(path)
    try:
        return await examine(store)
    finally:
        await store.close()


async def test_a_new_database_is_well(tmp_path: Path) -> None:
    health = await health_of(tmp_path / "hermes.db")

    assert health.engine.startswith("SQLite 3.")
    assert (health.full_text, health.damage) == (True, "")
