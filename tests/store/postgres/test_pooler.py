"""pgbouncer in front of the server: in session mode everything works, in transaction mode nothing begins."""

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from hermes_agent.core.errors import DatabaseUnreachable
from hermes_agent.store.database import open_store
from tests.doubles.postgres import USER, PostgresCluster
from tests.store.made import QUEUES, add, answer, append, claimed, mail, session
from tests.store.test_search import found, tell

NOT_INSTALLED = "pgbouncer is not installed here (apt-get install pgbouncer)"
SETTINGS = """
[databases]
* = host={server} user={user}
[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
auth_type = any
pool_mode = {mode}
"""
PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(PROGRAM is None, reason=NOT_INSTALLED)]


@contextmanager
def pooler(cluster: PostgresCluster, mode: str) -> Iterator[str]:
    """The address of a database behind a pooler."""
    database = f"pooled_{mode}_{os.getpid()}"
    cluster.execute(f"CREATE DATABASE {database}")
    folder = Path(tempfile.mkdtemp(prefix="hermes-pool-"))
    user = cluster.folder.owner()
    shutil.chown(folder, user)
    (folder / "settings").write_text(
        SETTINGS.format(server=cluster.folder, user=USER, folder=folder, mode=mode), encoding="utf-8"
    )
    program = subprocess.Popen(
        [str(PROGRAM), "-q", str(folder / "settings")],
        user=user if os.getuid() == 0 else None,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 10
        while not list(folder.glob(".s.PGSQL.*")):
            assert time.monotonic() < until
            assert program.poll() is None
        yield f"postgresql://{USER}@/{database}?port=6432&host={quote(str(folder), safe='')}"
    finally:
        program.send_signal(signal.SIGINT)
        program.wait(10)
        shutil.rmtree(folder)


async def test_in_session_mode_everything_works_as_with_the_server_itself(cluster: PostgresCluster):
    with pooler(cluster, "session") as url:
        here, there = await open_store(url), await open_store(url)
        lease = await claimed(here)
        await append(here, lease, 1, 2, 3)
        assert await answer(here, lease)
        await there.workers.register()
        while await there.workers.wait(0.05):
            pass
        await add(here, session("s2"))

        await here.inbox.accept(mail(2), "s2", "main")

        assert await there.workers.wait(5.0) is True
        held = await there.lanes.claim(QUEUES)
        assert held is not None
        assert await here.workers.reap() == []
        assert (await here.engine.read(lambda tx: tx.row("SHOW idle_in_transaction_session_timeout"))) == ("15s",)
        await tell(here, "s3", "a word")
        assert await found(there, "word") == [("s3", 1)]
        await there.close()
        await here.close()


async def test_in_transaction_mode_the_sentence_says_what_to_do(cluster: PostgresCluster):
    with pooler(cluster, "transaction") as url:
        for _ in range(3):
            with pytest.raises(DatabaseUnreachable, match="set pool_mode = session"):
                await register(url)


async def register(url: str) -> None:
    store = await open_store(url)
    try:
        async with asyncio.timeout(20):
            await store.workers.register()
    finally:
        await store.close()
