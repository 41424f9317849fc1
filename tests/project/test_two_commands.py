"""`./hermes` and `./check` make their environment once, whole, and then get out of the way."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
import os, sys
def main():
    print(os.getpid(), sys.argv, sys.prefix)
    return len(sys.argv) - 1
"""

# Stands for uv: counts its calls, then does what the test wrote into `then`.
UV = """#!/bin/sh
[ "$1" = pip ] || exit 1
echo "$*" >>"{bin}/calls"
. "{bin}/then"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A small copy of the project with an empty lock, and a PATH of its own."""

    root: Path
    bin: Path
    environment: dict[str, str]

    def start(self, *command: str, cwd: Path | None = None, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            cwd=cwd or self.root,
            env=self.environment | more,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def call(self, *command: str, cwd: Path | None = None, **more: str) -> tuple[int, str, str]:
        """The exit code, what was printed, and what was said on stderr."""
        process = self.start(*command, cwd=cwd, **more)
        out, err = process.communicate(timeout=25)
        return process.returncode, out, err

    def installer(self, script: str) -> None:
        (self.bin / "then").write_text(script)

    def installs(self) -> int:
        calls = self.bin / "calls"
        return len(calls.read_text().splitlines()) if calls.exists() else 0


def executable(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(0o755)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    root, folder = tmp_path / "a checkout", tmp_path / "bin"
    folder.mkdir()
    shutil.copytree(ROOT / ".ci", root / ".ci", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("hermes", "check"):
        shutil.copy2(ROOT / name, root / name)
    for name in ("requirements.lock", "requirements-dev.lock"):
        (root / name).write_text("# nothing\n")
    package = root / "src/hermes_agent/cli"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "main.py").write_text(PROGRAM)
    executable(folder / "python3", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    executable(folder / "uv", UV.format(bin=folder))
    (folder / "then").touch()
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(tmp_path)}
    return Checkout(root=root, bin=folder, environment=environment)


def test_the_first_call_makes_the_environment_and_runs_the_program(checkout: Checkout):
    code, out, err = checkout.call("./hermes", "sessions", "two words")
    assert "['hermes', 'sessions', 'two words']" in out
    assert code == 2
    assert "making" in err
    assert "ready after" in err


def test_a_second_call_installs_nothing_and_says_nothing(checkout: Checkout):
    checkout.call("./hermes")
    assert checkout.call("./hermes")[2] == ""
    assert checkout.installs() == 1


def test_the_program_runs_inside_the_environment_and_takes_the_place_of_the_shell(checkout: Checkout):
    process = checkout.start("./hermes")
    out, _ = process.communicate(timeout=25)
    assert out.split()[0] == str(process.pid)
    assert out.strip().endswith(f"{checkout.root}/.venv")


def test_a_changed_lock_installs_again(checkout: Checkout):
    checkout.call("./hermes")
    (checkout.root / "requirements.lock").write_text("# nothing else\n")
    checkout.call("./hermes")
    assert checkout.installs() == 2


def test_a_moved_checkout_installs_again(checkout: Checkout, tmp_path: Path):
    checkout.call("./hermes")
    moved = replace(checkout, root=checkout.root.rename(tmp_path / "elsewhere"))
    assert moved.call("./hermes")[0] == 0
    assert moved.installs() == 2


def test_a_half_made_environment_is_made_again(checkout: Checkout):
    checkout.call("./hermes")
    (checkout.root / ".venv/made-from").unlink()
    (checkout.root / ".venv/bin/left-over").touch()
    assert checkout.call("./hermes")[0] == 0
    assert not (checkout.root / ".venv/bin/left-over").exists()
    assert checkout.installs() == 2


def test_an_environment_whose_python_is_gone_is_made_again(checkout: Checkout):
    checkout.call("./hermes")
    python = checkout.root / ".venv/bin/python"
    python.unlink()
    python.symlink_to("/nowhere/python3.11")
    assert checkout.call("./hermes")[0] == 0


def test_a_folder_that_somebody_else_made_is_left_alone(checkout: Checkout):
    (checkout.root / ".venv").mkdir()
    (checkout.root / ".venv/precious").touch()
    code, _, err = checkout.call("./hermes")
    assert code == 1
    assert "was not made by this program" in err
    assert (checkout.root / ".venv/precious").exists()


def test_it_runs_by_a_link_from_another_folder_and_through_sh(checkout: Checkout, tmp_path: Path):
    (checkout.bin / "hermes").symlink_to(checkout.root / "hermes")
    assert checkout.call("hermes", "a", cwd=tmp_path)[0] == 1
    assert checkout.call("sh", "hermes", "a")[0] == 1
    assert checkout.installs() == 1


def test_neither_the_current_folder_nor_pythonpath_gets_in(checkout: Checkout, tmp_path: Path):
    (tmp_path / "hermes_agent.py").write_text("raise SystemExit('the wrong one')")
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong one')")
    code, _, err = checkout.call(str(checkout.root / "hermes"), cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert (code, "wrong" in err) == (0, False)


def test_a_stop_while_installing_leaves_nothing_that_counts_as_made(checkout: Checkout, tmp_path: Path):
    reached = tmp_path / "reached"
    os.mkfifo(reached)
    checkout.installer(f'echo now >"{reached}"; exec sleep 60\n')
    process = checkout.start("./hermes")
    assert reached.read_text() == "now\n"
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert process.returncode in (130, -signal.SIGINT)
    assert "the next call begins again" in err
    checkout.installer("exit 0\n")
    assert checkout.call("./hermes")[0] == 0


def test_two_at_once_make_it_once(checkout: Checkout, tmp_path: Path):
    reached, go_on = tmp_path / "reached", tmp_path / "go on"
    os.mkfifo(reached)
    os.mkfifo(go_on)
    checkout.installer(f'echo now >"{reached}"; read -r _ <"{go_on}"\n')
    first = checkout.start("./hermes")
    assert reached.read_text() == "now\n"
    second = checkout.start("./hermes")
    assert second.stderr is not None
    assert "waiting" in second.stderr.readline()
    go_on.write_text("\n")
    assert [process.communicate(timeout=20) and process.returncode for process in (first, second)] == [0, 0]
    assert checkout.installs() == 1


def test_a_version_managers_stand_in_that_leads_nowhere_is_passed_over(checkout: Checkout):
    (checkout.bin / "python3").rename(checkout.bin / "python3.13")
    executable(checkout.bin / "python3", "#!/bin/sh\necho 'python3: command not found' >&2\nexit 127\n")
    assert checkout.call("./hermes")[0] == 0


def test_without_a_python_that_suits_it_says_what_to_install(checkout: Checkout):
    for tool in ("sh", "cat", "cmp", "dirname"):
        (checkout.bin / tool).symlink_to(str(shutil.which(tool)))
    executable(checkout.bin / "python3", "#!/bin/sh\n[ $1 = -V ] && echo Python 3.9.2\nexit 1\n")
    code, _, err = checkout.call("./hermes", PATH=str(checkout.bin))
    assert code == 1
    assert "Python 3.11, 3.12 or 3.13 is needed" in err
    assert "python3 is Python 3.9.2" in err
    assert "apt install" in err


def test_check_has_an_environment_of_its_own(checkout: Checkout):
    code, out, _ = checkout.call("./check", "--help")
    assert (code, "--fast" in out) == (0, True)
    assert (checkout.root / ".venv-dev/made-from").exists()
    assert not (checkout.root / ".venv").exists()


# Root may write everywhere but on a read-only mount, which it sees for itself alone.
READ_ONLY = [
    "unshare",
    "-m",
    "sh",
    "-c",
    'mount --bind . . && mount -o remount,ro,bind . && cd "$PWD" && exec ./hermes',
]


@pytest.fixture
def read_only_call(checkout: Checkout) -> Iterator[list[str]]:
    """The command that runs Hermes from the checkout, where nothing can be written."""
    if os.geteuid() == 0:
        if checkout.call("unshare", "-m", "sh", "-c", "mount --bind . .")[0] != 0:
            pytest.skip("a container that lets root mount nothing")
        yield READ_ONLY
        return
    folders = [checkout.root, *checkout.root.rglob("*/")]
    for folder in folders:
        folder.chmod(0o555)
    yield ["./hermes"]
    for folder in folders:
        folder.chmod(0o755)


def test_a_checkout_that_cannot_be_written_runs_from_the_cache_folder(
    checkout: Checkout, read_only_call: list[str], tmp_path: Path
):
    code, out, _ = checkout.call(*read_only_call, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert code == 0
    assert str(tmp_path / "cache/hermes-runtime") in out
    assert checkout.call(*read_only_call, XDG_CACHE_HOME=str(tmp_path / "cache"))[2] == ""
    assert not (checkout.root / ".venv").exists()
    assert not list(checkout.root.rglob("*.pyc"))


def test_a_second_call_adds_less_than_30_ms(checkout: Checkout):
    checkout.call("./hermes")
    python = str(checkout.root / ".venv/bin/python")
    program = "from hermes_agent.cli.main import main; main()"
    ours = fastest(lambda: checkout.call("./hermes"))
    bare = fastest(lambda: checkout.call(python, "-I", "-c", program))
    assert ours - bare < 0.030


def fastest(run: Callable[[], object]) -> float:
    """Seconds of the best of nine runs, which a busy machine disturbs least."""
    seconds = []
    for _ in range(9):
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return min(seconds)
