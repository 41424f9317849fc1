"""The settings choose the place and its walls."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from hermes_agent.app.places import has_network, make_place, network_of, walls
from hermes_agent.host.paths import Home
from hermes_agent.sandbox.jail import CannotJail, jail_of
from hermes_agent.sandbox.place import Command, PlaceFailed
from hermes_agent.sandbox.walls import Walls
from hermes_agent.tools.settings import TerminalSettings

Network = Literal["proxy", "on", "off"] | bool | tuple[str, ...]


@pytest.fixture
def made(tmp_path: Path) -> Home:
    return Home(root=tmp_path / "home", base=tmp_path / "home").ensure()


async def run(home: Home, settings: TerminalSettings, text: str, folder: Path) -> str:
    place = make_place(home, settings, {"PATH": "/usr/bin:/bin", "MY_TOKEN": "secret"})
    running = await place.start("g/a", Command(text=text, folder=str(folder)))
    await running.wait()
    output = (await running.read(0, 1000)).decode()
    await place.close()
    return output


@pytest.mark.parametrize(("jail", "records"), [("auto", {"exec", "jailed"}), ("none", {"exec"})])
async def test_commands_run_on_this_machine_without_secrets(made: Home, tmp_path: Path, jail: str, records: set[str]):
    settings = TerminalSettings(jail=jail)

    assert await run(made, settings, "echo ${MY_TOKEN-none} >out; cat out", tmp_path) == "none\n"
    assert {path.name for path in made.cache.iterdir()} & {"exec", "jailed"} <= records


async def test_a_jail_keeps_its_records_apart_and_hides_the_home(made: Home, tmp_path: Path):
    try:
        jail_of("any", Walls())
    except CannotJail as reason:
        pytest.skip(str(reason))
    made.env_file.write_text("KEY=sk-secret\n")
    work = tmp_path / "work"
    work.mkdir()

    said = await run(made, TerminalSettings(jail="any"), f"cat {made.env_file}; echo done", work)

    assert "sk-secret" not in said
    assert "done" in said
    assert (made.cache / "jailed").is_dir()
    assert not (made.cache / "exec").exists()


@pytest.mark.parametrize(
    ("network", "open_", "variables"), [("off", False, 0), (False, False, 0), (True, True, None), ("proxy", False, 9)]
)
async def test_the_setting_says_what_commands_reach(network: Network, open_: bool, variables: int | None):
    settings = TerminalSettings(network=network)
    made = network_of(settings)

    assert has_network(settings) == open_
    if made is None:
        assert variables is None
    else:
        await made.open()
        assert len(made.variables()) == variables
        await made.close()


def test_an_address_in_the_list_is_reached_directly_but_for_hermes_itself():
    made = network_of(TerminalSettings(network=("*", "127.0.0.1:5432", "127.0.0.1:8642")))

    assert made is not None
    assert made._direct == {"*", "127.0.0.1:5432"}


def test_a_list_of_hosts_is_for_this_machine_only(made: Home):
    with pytest.raises(PlaceFailed, match="`local` only"):
        make_place(made, TerminalSettings(place="docker", network=("a.example",)), {})


def test_credentials_and_every_profile_are_hidden_and_named_folders_are_writable(made: Home):
    profile = replace(made, root=made.base / "profiles" / "work")

    found = walls(profile, TerminalSettings(writable=("~/notes",), network=True), {})

    assert {str(made.base), str(Path.home() / ".ssh"), "/etc/shadow"} <= set(found.closed)
    assert found.writable == (str(Path.home() / "notes"),)
    assert found.network


@pytest.mark.parametrize("name", ["~/.ssh", "~/.ssh/sub", "{home}", "{home}/skills", "/etc/shadow"])
def test_no_setting_opens_what_is_closed(made: Home, name: str):
    for settings in (TerminalSettings(writable=(name.format(home=made.root),)),):
        with pytest.raises(PlaceFailed, match="is closed to commands"):
            walls(made, settings, {})


def test_limits_have_defaults_and_are_settings(made: Home):
    assert walls(made, TerminalSettings(), {}).memory_mb > 100
    found = walls(made, TerminalSettings(memory_mb=77, processes=99), {})
    assert (found.memory_mb, found.processes) == (77, 99)
