"""Everyday work behind the wall that stands by default: builds, tests, commits, servers."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest

import hermes_agent
from hermes_agent.app.places import make_place, walls
from hermes_agent.host.paths import Home
from hermes_agent.sandbox.jail import CannotJail, jail_of
from hermes_agent.sandbox.place import Command, PlaceFailed
from hermes_agent.tools.settings import TerminalSettings

Say = Callable[[str], Awaitable[tuple[int | None, str]]]


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "me"
    (folder / "project").mkdir(parents=True)
    (folder / ".ssh").mkdir()
    (folder / ".ssh" / "id").write_text("sk-key")
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def home(person: Path) -> Home:
    made = Home(root=person / ".hermes", base=person / ".hermes").ensure()
    made.env_file.write_text("KEY=sk-secret")
    return made


@pytest.fixture(params=["bubblewrap", "landlock"])
def settings(request: pytest.FixtureRequest, home: Home) -> TerminalSettings:
    made = TerminalSettings(jail=request.param)
    try:
        jail_of(request.param, walls(home, made, os.environ))
    except CannotJail as reason:
        pytest.skip(f"no {request.param} here: {reason}")
    return made


def said_in(home: Home, settings: TerminalSettings, folder: Path) -> Say:
    place, count = make_place(home, settings, os.environ), iter(range(100))

    async def say(text: str) -> tuple[int | None, str]:
        try:
            running = await place.start(f"g/{next(count)}", Command(text=text, folder=str(folder), shell="g"))
            ended = await running.wait()
            return ended.code, (await running.read(0, 1 << 16)).decode(errors="replace")
        finally:
            await place.close()

    return say


@pytest.fixture
def say(home: Home, settings: TerminalSettings, person: Path) -> Say:
    return said_in(home, settings, person / "project")


def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"no {program} here")


async def test_the_tests_of_a_project_run_in_its_venv(say: Say, person: Path) -> None:
    project = person / "project"
    (project / ".venv" / "bin").mkdir(parents=True)
    (project / ".venv" / "bin" / "python").symlink_to(Path(sys.base_prefix, "bin", "python3"))
    (project / ".venv" / "pyvenv.cfg").write_text(f"home = {sys.base_prefix}/bin\n")
    (project / "test_it.py").write_text(
        "import multiprocessing, tempfile, unittest\n"
        "class T(unittest.TestCase):\n"
        "    def test_it(self):\n"
        "        with tempfile.NamedTemporaryFile() as file: file.write(b'x')\n"
        "        self.assertEqual(multiprocessing.Pipe()[0].closed, False)\n"
    )

    code, output = await say(
        ".venv/bin/python -m unittest -q test_it && .venv/bin/python -c 'import sys; print(sys.prefix)'"
    )

    assert code == 0, output
    assert output.splitlines()[-1] == str(project / ".venv")


async def test_a_commit_has_the_person_s_name_and_no_credential_is_seen(say: Say, person: Path) -> None:
    needs("git")
    config = '[user]\n\tname = Ann\n\temail = a@example.org\n[http "https://x"]\n\textraheader = "Basic sk-head"\n'
    (person / ".gitconfig").write_text(f"{config}[commit]\n\tgpgsign = true\n")

    code, output = await say("git init -q . && echo x >a && git add a && git commit -qm one && git log --format=%an%ae")
    _, seen = await say("cat ~/.gitconfig ~/.ssh/id ~/.hermes/.env; git config --list")

    assert (code, output.splitlines()[-1]) == (0, "Anna@example.org")
    assert "sk-" not in seen
    assert (person / ".gitconfig").read_text().startswith(config)


async def test_make_and_a_compiler_build(say: Say, person: Path) -> None:
    needs("make")
    needs("cc")
    (person / "project" / "Makefile").write_text("it: it.c\n\tcc -o it it.c && ./it\n")
    (person / "project" / "it.c").write_text('#include <stdio.h>\nint main(void) { puts("built"); return 0; }\n')

    assert await say("make -s") == (0, "built\n")


@pytest.mark.slow
async def test_cargo_builds_offline(home: Home, settings: TerminalSettings, person: Path) -> None:
    needs("cargo")
    real = Path(shutil.which("cargo") or "").parent.parent
    if (real.parent / ".rustup").is_dir():
        (person / ".rustup").symlink_to(real.parent / ".rustup")
    (person / "project" / "src").mkdir()
    (person / "project" / "Cargo.toml").write_text('[package]\nname = "it"\nversion = "0.1.0"\nedition = "2021"\n')
    (person / "project" / "src" / "main.rs").write_text('fn main() { println!("built"); }\n')

    code, output = await said_in(home, settings, person / "project")("cargo build -q --offline && target/debug/it")

    assert (code, output) == (0, "built\n"), output


SERVES = "python3 -m http.server --bind 127.0.0.1 0 >served 2>&1 & "
ASKS = "while ! grep -q port served; do sleep 0.05; done; port=$(sed -n 's/.* port \\([0-9]*\\).*/\\1/p' served); "


@pytest.mark.slow
async def test_pip_and_npm_install_from_a_server_of_the_workspace_that_the_person_s_browser_reaches(
    home: Home, settings: TerminalSettings, person: Path
) -> None:
    needs("npm")
    project = person / "project"
    with zipfile.ZipFile(project / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "print('from a wheel')")
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")
    with tarfile.open(project / "small-1.0.0.tgz", "w:gz") as archive:
        for name, text in (
            ("package.json", '{"name": "small", "version": "1.0.0"}'),
            ("index.js", "console.log('js')"),
        ):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    (project / "package.json").write_text('{"name": "mine", "version": "1.0.0"}')
    place = make_place(home, settings, os.environ)
    serving = Command(text=f"{SERVES}wait", folder=str(project), background=True)
    installs = (
        f"{ASKS} at=http://127.0.0.1:$port; {sys.executable} -m venv --without-pip env && "
        f"{sys.executable} -m pip --python env/bin/python install -q --no-deps --find-links $at --no-index tiny && "
        "env/bin/python -m tiny && npm install --no-audit --no-fund --silent $at/small-1.0.0.tgz && node -e "
        "'require(\"small\")'"
    )
    try:
        server = await place.start("g/serves", serving)
        installing = await place.start("g/installs", Command(text=installs, folder=str(project), limit=60))
        code = (await installing.wait()).code
        said = (await installing.read(0, 1 << 16)).decode()
        port = re.findall(r"port (\d+)", (project / "served").read_text())[0]
        async with httpx.AsyncClient(trust_env=False) as browser:
            page = await browser.get(f"http://127.0.0.1:{port}/package.json")
    finally:
        await server.kill()
        await place.close()

    assert (code, said.splitlines()[-2:]) == (0, ["from a wheel", "js"]), said
    assert '"small"' in page.text


async def test_node_runs_a_child_and_writes_its_cache(say: Say) -> None:
    needs("node")
    code = "require('child_process').execSync('echo child', {stdio: 'inherit'}); console.log(require('os').tmpdir())"

    answer = await say(f'node -e "{code}" && npm config get cache')

    assert answer[0] == 0
    assert answer[1].startswith("child\n")
    assert "cache/walls/" in answer[1].splitlines()[-1]


async def test_a_dev_server_runs_in_the_background_and_ends_when_told(
    home: Home, settings: TerminalSettings, person: Path
) -> None:
    place = make_place(home, settings, os.environ)
    text = "echo $$; while :; do echo serves; sleep 0.05; done"
    running = await place.start("g/s", Command(text=text, folder=str(person / "project"), background=True))

    while b"serves" not in await running.read(0, 1000):
        assert await running.poll() is None

    assert await running.kill()
    await place.close()


async def test_a_workspace_that_is_the_person_s_home_has_no_home_of_hermes_and_no_credentials(
    home: Home, settings: TerminalSettings, person: Path
) -> None:
    say = said_in(home, settings, person)
    (person / "project" / "notes").write_text("mine")

    _, output = await say(
        "cat ~/.ssh/id ~/.hermes/.env; mv ~/.ssh x; mv ~/.hermes y; cat x/id y/.env; cat project/notes"
    )
    code, _ = await say("echo new >project/new")

    assert "sk-" not in output
    assert output.endswith("mine")
    assert (code, (person / "project" / "new").read_text()) == (0, "new\n")
    assert (person / ".ssh" / "id").exists()
    assert home.env_file.exists()


async def test_the_home_of_hermes_is_no_workspace_but_its_workspace_is(home: Home, settings: TerminalSettings) -> None:
    work = home.root / "workspace"
    for folder in (work, home.skills):
        folder.mkdir()

    assert await said_in(home, settings, work)("echo x >a; cat a ../.env 2>/dev/null; true") == (0, "x\n")
    for folder in (home.root, home.skills):
        with pytest.raises(PlaceFailed, match="is closed to commands"):
            await said_in(home, settings, folder)("true")


AS_A_USER = """
import asyncio, os, sys
from pathlib import Path
from hermes_agent.app.places import make_place
from hermes_agent.host.paths import Home
from hermes_agent.sandbox.place import Command
from hermes_agent.tools.settings import TerminalSettings

async def main(kind, text):
    person = Path(os.environ["HOME"])
    home = Home(root=person / ".hermes", base=person / ".hermes").ensure()
    home.env_file.write_text("sk-secret")
    (person / "work").mkdir(exist_ok=True)
    place = make_place(home, TerminalSettings(jail=kind, processes=60, memory_mb=200), os.environ)
    running = await place.start(f"g/{os.getpid()}", Command(text=text, folder=str(person / "work"), limit=60))
    print((await running.wait()).code, (await running.read(0, 9000)).decode(), place.wall())
    await place.close()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
def test_an_ordinary_user_has_the_same_walls_and_limits(kind: str) -> None:
    needs("setpriv")
    person = Path("/var/tmp") / f"hermes-wall-{os.getpid()}-{kind}"
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    source = ":".join((str(Path(hermes_agent.__file__).parents[1]), packages))
    env = {"HOME": str(person), "PATH": "/usr/bin:/bin", "PYTHONPATH": source}
    user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", f"python3.{sys.version_info[1]}", "-c"]
    if subprocess.run([*user, "import msgspec, hermes_agent"], env=env, cwd="/", check=False).returncode:
        pytest.skip("this checkout, or an interpreter for it, cannot be read by others")
    bomb = "sh -c 'i=0; while [ $i -lt 400 ]; do sleep 9 & i=$((i+1)); done; sleep 2; echo all $i' 2>/dev/null; :"
    memory = "python3 -c 'import time; x = bytearray(400 << 20); time.sleep(9); print(len(x))' 2>/dev/null; echo over"
    person.mkdir(mode=0o700)
    os.chown(person, 65534, 65534)
    try:
        for text, unwanted in (("cat ~/.hermes/.env /etc/shadow", "sk-"), (bomb, "all 400"), (memory, "419430400")):
            line = [*user, AS_A_USER, kind, text]
            said = subprocess.run(line, env=env, cwd="/", capture_output=True, text=True, timeout=25, check=False)
            assert said.returncode == 0, said.stderr
            assert said.stdout.strip().endswith(kind)
            assert unwanted not in said.stdout
    finally:
        shutil.rmtree(person)
