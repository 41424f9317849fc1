"""The unit of systemd: right by systemd's own judgement, and written where it belongs."""

import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from hermes_agent.cli.gateway.unit import Unit, install, quoted, uninstall, unit_of
from hermes_agent.cli.options import Invocation
from hermes_agent.cli.surface import Surface
from hermes_agent.core.errors import HermesError, HomeError

COMMAND = ("/bin/true", "a b", "100%", "$HOME", 'say "hi"')


def surface(tmp_path: Path, profile: str = "", **variables: str) -> Surface:
    known = {"HERMES_HOME": str(tmp_path / "my home 100%"), "HOME": str(tmp_path), "PATH": str(tmp_path / "bin")}
    return Surface(invocation=Invocation(profile=profile), variables={**known, **variables})


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd judges it")
def test_systemd_understands_the_unit(tmp_path: Path):
    made = unit_of(surface(tmp_path), COMMAND, system=True)
    (tmp_path / made.name).write_text(made.text.replace("network-online.target", "basic.target"))

    judged = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(tmp_path / made.name)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert made.name not in judged.stderr
    assert judged.returncode == 0, judged.stderr


def test_it_watches_the_loop_and_waits_for_what_runs(tmp_path: Path):
    lines = unit_of(surface(tmp_path), COMMAND, system=False).text.splitlines()

    assert {"Type=notify", "Restart=on-failure", "WatchdogSec=60", "TimeoutStopSec=50"} <= set(lines)
    assert 'ExecStart=/bin/true "a b" 100%% $$HOME "say \\"hi\\""' in lines
    assert f'Environment="HERMES_HOME={tmp_path}/my home 100%%"' in lines
    assert not any(line.startswith("User=") for line in lines)


@pytest.mark.parametrize(("word", "written"), [("", '""'), ("a\\b", '"a\\\\b"'), ("a\nb", '"a b"'), ("plain", "plain")])
def test_words_stand_for_themselves(word: str, written: str):
    assert quoted(word) == written


def test_each_profile_has_a_unit_of_its_own(tmp_path: Path):
    own = unit_of(surface(tmp_path, "work"), COMMAND, system=False)
    elsewhere = unit_of(surface(tmp_path, XDG_CONFIG_HOME=str(tmp_path / "x")), COMMAND, system=False)
    system = unit_of(surface(tmp_path, "work"), COMMAND, system=True)

    assert own.path == tmp_path / ".config/systemd/user/hermes-gateway-work.service"
    assert elsewhere.path == tmp_path / "x/systemd/user/hermes-gateway.service"
    assert system.path == Path("/etc/systemd/system/hermes-gateway-work.service")
    assert "User=" in system.text
    with pytest.raises(HomeError, match="--system"):
        unit_of(surface(tmp_path, HOME=""), COMMAND, system=False)


def systemctl(tmp_path: Path, code: int = 0) -> Path:
    """A program of that name which notes how it was called."""
    (tmp_path / "bin").mkdir(exist_ok=True)
    program, noted = tmp_path / "bin" / "systemctl", tmp_path / "called"
    program.write_text(f"#!/bin/sh\necho \"$@\" >> {noted}\necho 'No bus.' >&2\nexit {code}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return noted


async def test_it_is_written_and_switched_on_and_taken_away(tmp_path: Path):
    noted, here = systemctl(tmp_path), surface(tmp_path)
    made = unit_of(here, COMMAND, system=False)

    await install(made, here)
    assert made.path.read_text() == made.text
    await uninstall(made, here)

    assert not made.path.exists()
    assert noted.read_text().splitlines() == [
        "--user daemon-reload",
        "--user enable hermes-gateway.service",
        "--user restart hermes-gateway.service",
        "--user disable --now hermes-gateway.service",
        "--user daemon-reload",
    ]
    with pytest.raises(HermesError, match="There is no"):
        await uninstall(made, here)


async def test_what_systemd_says_against_it_is_told(tmp_path: Path):
    systemctl(tmp_path, code=1)
    here = surface(tmp_path)

    with pytest.raises(HermesError, match=r"systemctl --user daemon-reload` did not work: No bus\."):
        await install(unit_of(here, COMMAND, system=False), here)


async def test_without_systemctl_that_is_told(tmp_path: Path):
    here = surface(tmp_path, PATH=str(tmp_path))

    with pytest.raises(HermesError, match="did not work"):
        await install(unit_of(here, COMMAND, system=False), here)


async def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path):
    (tmp_path / "file").touch()
    here = surface(tmp_path)

    for system, way in ((True, "without --system"), (False, "a file stands")):
        unit = Unit(path=tmp_path / "file" / "x.service", text="", system=system)
        with pytest.raises(HomeError, match=way):
            await install(unit, here)
