"""Opening a store: by URL, once, with a sentence where it cannot be."""

import os
from pathlib import Path

import pytest

from hermes_agent.core.errors import DatabaseUnreachable
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.transaction import Dialect
from tests.store.made import add, session


async def test_what_was_kept_is_there_after_opening_again(database_url: str):
    store = await open_store(database_url)
    await add(store, session())
    await store.close()

    again = await open_store(database_url)

    assert await again.sessions.get("s1") is not None
    await again.close()


async def test_the_url_names_the_dialect(database_url: str, store: Store):
    assert store.dialect is (Dialect.SQLITE if database_url.startswith("sqlite") else Dialect.POSTGRES)


@pytest.mark.parametrize("form", ["sqlite:///{}", "{}"])
async def test_a_path_is_sqlite(tmp_path: Path, form: str):
    path = tmp_path / "deep" / "a b.db"

    store = await open_store(form.format(str(path).replace(" ", "%20") if "://" in form else path))
    await store.close()

    assert path.exists()


async def test_a_path_object_is_sqlite(tmp_path: Path):
    store = await open_store(tmp_path / "x.db")

    assert store.dialect is Dialect.SQLITE
    await store.close()


async def test_another_scheme_is_refused_by_name():
    with pytest.raises(DatabaseUnreachable, match="mysql://"):
        await open_store("mysql://root:secret@host/db")


async def test_an_unreachable_server_is_an_error_and_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(DatabaseUnreachable, match=r"store\.url"):
        await open_store(f"postgresql://x@/y?host={tmp_path}")

    assert os.listdir(tmp_path) == []  # noqa: PTH208  an async function


async def test_a_closed_store_says_so(store: Store):
    await store.close()

    with pytest.raises(DatabaseUnreachable, match="closed"):
        await store.sessions.get("s1")
    with pytest.raises(DatabaseUnreachable, match="closed"):
        await store.sessions.delete("s1")


async def test_closing_twice_is_closing(store: Store):
    await store.close()
    await store.close()
