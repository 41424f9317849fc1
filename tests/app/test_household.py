"""The store of a home: its own file without a question, any other database under the home's name."""

import asyncio
from pathlib import Path

import pytest

from hermes_agent.app.household import id_of, local_owner, open_store_of
from hermes_agent.app.opening import open_system
from hermes_agent.app.operations.sessions import session_stats
from hermes_agent.app.process import Options
from hermes_agent.app.settings import StoreSettings
from hermes_agent.cli.operation import ask
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.surface import Surface
from hermes_agent.core.chat import Standing
from hermes_agent.core.errors import ConfigError, DatabaseInUse, HomeError
from hermes_agent.host.paths import Home
from tests.databases import cluster, database_url

__all__ = ["cluster", "database_url"]


def home_in(folder: Path, text: str = "") -> Home:
    home = Home(root=folder, base=folder).ensure()
    home.config_file.write_text(text)
    return home


async def test_a_database_of_its_own_needs_no_name(tmp_path: Path):
    home = home_in(tmp_path)

    for url in ("", str(home.database), f"sqlite:///{home.database}"):
        store = await open_store_of(home, StoreSettings(url=url))
        assert (store.versions.machine, await store.homes.list()) == ("", [])
        await store.close()

    assert not (tmp_path / "home.id").exists()


def test_a_home_has_one_name(tmp_path: Path):
    home = home_in(tmp_path)

    assert len({id_of(home) for _ in range(3)}) == 1
    assert [each.name for each in tmp_path.glob("*home.id*")] == ["home.id"]


def test_a_name_that_was_lost_is_a_sentence(tmp_path: Path):
    home = home_in(tmp_path)
    (tmp_path / "home.id").touch()

    with pytest.raises(HomeError, match=r"home\.id is empty: move it out of the way"):
        id_of(home)


def test_every_way_in_refuses_a_second_home(database_url: str, tmp_path: Path):
    settings = f"store: {{url: '{database_url}'}}\n"
    first, second = home_in(tmp_path / "first", settings), home_in(tmp_path / "second", settings)
    ask(surface(first), session_stats)

    with pytest.raises(DatabaseInUse, match=str(first.root)):
        ask(surface(second), session_stats)
    with pytest.raises(DatabaseInUse, match=str(first.root)):
        asyncio.run(running(second))

    for home in (first, second):
        home.config_file.write_text(settings.replace("}", ", shared: true}"))
        ask(surface(home), session_stats)
        asyncio.run(running(home))


@pytest.mark.parametrize(
    "text", ["store: {url: 'postgresql://elsewhere/h'\n", "store: {uri: 'postgresql://elsewhere/h'}"]
)
def test_every_way_in_refuses_settings_that_were_never_right(tmp_path: Path, text: str):
    """They may name another database than the one that the defaults would make."""
    home = home_in(tmp_path, text)

    for begin in (
        lambda: asyncio.run(running(home)),
        lambda: ask(surface(home), session_stats),
    ):
        with pytest.raises(ConfigError, match=r"config\.yaml:\d: .* `hermes config edit`"):
            begin()

    assert not home.database.exists()


async def running(home: Home) -> None:
    async with open_system(home, Options()):
        pass


def surface(home: Home) -> Surface:
    return Surface(invocation=Invocation(), variables={"HERMES_HOME": str(home.root)})


def test_the_person_of_this_machine_is_the_owner():
    assert local_owner().standing is Standing.OWNER
