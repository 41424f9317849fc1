"""What is installed is what is written: version, dependencies, locks, and the wheel."""

import re
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from flit_core.wheel import make_wheel_in
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hermes_agent.version import VERSION

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RUN = PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"]["postgres"]
LOCKS = {"requirements.lock": RUN, "requirements-dev.lock": RUN + PROJECT["dependency-groups"]["dev"]}

PIN = re.compile(r"^([\w.-]+)==([\w.]+)(?: ;[^\\\n]*)?((?: \\\n    --hash=sha256:[0-9a-f]{64})*)$", re.MULTILINE)


def pins(lock: str) -> dict[str, str]:
    return {canonicalize_name(name): version for name, version, _hashes in PIN.findall(lock)}


def not_locked(wanted: list[str], locked: Mapping[str, str]) -> list[str]:
    needs = [Requirement(text) for text in wanted]
    return [str(need) for need in needs if not need.specifier.contains(locked.get(canonicalize_name(need.name), "0"))]


def test_the_version_is_written_twice_and_the_same():
    assert PROJECT["project"]["version"] == VERSION


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_has_all_that_pyproject_asks_for(lock: str):
    assert not_locked(LOCKS[lock], pins((ROOT / lock).read_text())) == [], "run .ci/lock"


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_in_a_lock_has_its_hashes_and_no_index_is_named(lock: str):
    text = (ROOT / lock).read_text()
    assert len(PIN.findall(text)) == len(re.findall(r"^\S+==", text, re.MULTILINE))
    assert [name for name, _version, hashes in PIN.findall(text) if not hashes] == []
    assert "://" not in text


def test_both_locks_agree():
    run, dev = (pins((ROOT / lock).read_text()) for lock in LOCKS)
    assert run.items() <= dev.items()


@pytest.mark.parametrize("requirement", RUN + PROJECT["dependency-groups"]["dev"])
def test_every_dependency_has_a_lower_bound(requirement: str):
    assert ">=" in requirement


def test_a_dependency_that_the_lock_lacks_is_found():
    assert not_locked(["httpx2>=2.16"], {"httpx2": "2.15"}) == ["httpx2>=2.16"]
    assert not_locked(["httpx2>=2.16"], {}) == ["httpx2>=2.16"]
    assert not_locked(["PyYAML>=6.0"], {"pyyaml": "6.0.3"}) == []


def test_the_wheel_holds_the_program_its_command_and_its_licence(tmp_path: Path):
    wheel = make_wheel_in(ROOT / "pyproject.toml", tmp_path).file
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        commands = opened.read(f"hermes_runtime-{VERSION}.dist-info/entry_points.txt").decode()
    assert {"hermes_agent/__init__.py", "hermes_agent/core/errors.py", "hermes_agent/py.typed"} <= names
    assert f"hermes_runtime-{VERSION}.dist-info/licenses/LICENSE" in names
    assert "hermes=hermes_agent.cli.main:main" in commands.replace(" ", "")
