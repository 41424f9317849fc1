"""The way into SQLite is quick, and brings nothing of PostgreSQL along."""

import asyncio
import statistics
import subprocess
import sys
import time
from pathlib import Path

from hermes_agent.store.database import open_store

SOURCE = Path(__file__).parents[3] / "src"


async def test_opening_what_is_there_takes_a_few_milliseconds(tmp_path: Path):
    await (await open_store(tmp_path / "hermes.db")).close()
    taken = []
    for _ in range(9):
        began = time.perf_counter()
        store = await open_store(tmp_path / "hermes.db")
        taken.append(time.perf_counter() - began)
        await store.close()

    # 3 ms on a quiet machine; tests run beside others.
    assert statistics.median(taken) < 0.012


async def test_the_driver_of_the_other_dialect_is_not_loaded(tmp_path: Path):
    code = (
        "import asyncio, sys; from hermes_agent.store.database import open_store\n"
        "async def main(): await (await open_store(sys.argv[1])).close()\n"
        "asyncio.run(main()); print('asyncpg' in sys.modules, 'apsw' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "x.db")]

    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(SOURCE)}
    )

    assert done.stdout.split() == ["False", "True"]
