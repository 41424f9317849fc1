"""What a person gets who gives the program what it cannot use: a sentence, the right exit code, and nothing lost."""

import os
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hermes_agent.core.messages import ToolResult
from hermes_agent.providers.demo.script import Call, Heard, Piece, Say
from hermes_agent.testing.clock import FakeClock
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving_in_thread
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import Harness
from tests.children import Said, said_by, started, unprivileged

MB = 1 << 20


@dataclass
class Desk:
    """A person's home and project, and what the model's calls brought."""

    home: Path
    work: Path
    server: ModelServer | None = None
    calls: list[Call] = field(default_factory=list)

    @property
    def config(self) -> str:
        return f"model:\n  default: custom/m\n  base_url: {self.server.url}\n"

    def ask(self, *arguments: str, **more: object) -> Said:
        return said_by(started(*(arguments or ("-z", "Hi")), home=self.home, folder=self.work, **more))

    def answer(self, heard: Heard) -> list[Piece]:
        """The calls one by one, then words."""
        spoken = sum(message.role == "assistant" for message in heard.messages)
        return [self.calls[spoken]] if spoken < len(self.calls) else [Say("Hello.")]

    def results(self, *calls: Call, **more: object) -> list[str]:
        """What the model is told when it makes these calls."""
        self.calls = list(calls)
        said = self.ask(**more)
        assert (said.code, said.out) == (0, "Hello.\n"), said
        parts = [part for message in self.server.asked[-1].messages for part in message.parts]
        return [part.text for part in parts if isinstance(part, ToolResult)]

    def works(self) -> None:
        """Assert that a question is answered."""
        said = self.ask()
        assert (said.code, said.out, said.err) == (0, "Hello.\n", "")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path / "home", tmp_path / "work")
    for folder in (desk.home, desk.work):
        folder.mkdir()
    with serving_in_thread(openai_model(desk.answer, keys=())) as server:
        desk.server = server
        (desk.home / "config.yaml").write_text(desk.config)
        yield desk


@pytest.fixture
def unable() -> list[str]:
    """The beginning of a command line for whose program file modes hold."""
    words = unprivileged()
    if words is None:
        pytest.skip("root may read everything, and setpriv (util-linux) is not here")
    return words


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 3 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk]
    if os.geteuid() != 0 or subprocess.run(mount, check=False).returncode:
        pytest.skip("a disk of our own can only be mounted by root")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return filler


def test_without_a_key_there_are_two_ways_on(desk: Desk):
    (desk.home / "config.yaml").unlink()
    said = desk.ask()

    assert (said.code, said.out) == (3, "")
    assert said.err == (
        "There is no model to ask: no key was found and none is configured. "
        "`hermes setup` chooses one, `hermes demo` shows how it works without a key.\n"
    )


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (b"agent: [\n", "config.yaml:2: not valid YAML"),
        (b"model:\n  defualt: x\n", "config.yaml:2: unknown setting `model.defualt`. Did you mean `model.default`?"),
        (b"agent:\n  max_turns: many\n", "config.yaml:2: "),
        (b"\xff\xfe\x00", "UTF-16; save it as UTF-8"),
        (b"\x00\x01\x02", "config.yaml"),
    ],
)
def test_a_broken_config_uses_the_last_good_one_and_says_which_line(desk: Desk, broken: bytes, why: str):
    desk.works()
    (desk.home / "config.yaml").write_bytes(broken)
    said = desk.ask()

    assert (said.code, said.out) == (0, "Hello.\n")
    assert why in said.err
    assert said.err.endswith("The last good settings are used.\n")
    assert (desk.home / "config.yaml").read_bytes() == broken


def test_a_broken_config_that_was_never_good_is_refused_with_the_way_out(desk: Desk):
    (desk.home / "config.yaml").write_text("model: [\n")
    said = desk.ask()

    assert (said.code, said.out) == (4, "")
    assert "config.yaml:2: not valid YAML" in said.err
    assert "Repair it with `hermes config edit`" in said.err


def test_a_home_that_is_a_file(desk: Desk):
    (desk.home / "config.yaml").rename(desk.work / "config.yaml")
    desk.home.rmdir()
    desk.home.write_text("mine")
    said = desk.ask()

    assert said.code == 4
    assert f"The home {desk.home} cannot be used" in said.err
    assert "a file stands where a folder must be" in said.err
    assert desk.home.read_text() == "mine"


@pytest.mark.parametrize("mode", [0o000, 0o500, 0o300])
def test_a_home_that_is_not_ours_to_use(desk: Desk, unable: list[str], mode: int):
    desk.home.chmod(mode)
    said = desk.ask(before=unable)
    desk.home.chmod(0o700)

    assert (said.code, said.out) == (4, "")
    assert f"The home {desk.home} cannot be " in said.err
    assert f"`chown -R $USER {desk.home}`" in said.err
    assert len(said.err.splitlines()) == 1
    assert desk.server.exchanges == []


def test_a_home_that_became_read_only_loses_nothing(desk: Desk, unable: list[str]):
    desk.works()
    for path in (desk.home, *desk.home.rglob("*")):
        path.chmod(0o500 if path.is_dir() else 0o400)
    said = desk.ask(before=unable)
    for path in (desk.home, *desk.home.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)

    assert said.code == 4
    assert "cannot be read and written by you" in said.err
    desk.works()


def test_a_full_disk_stops_with_the_reason_and_keeps_the_conversation(desk: Desk, small_disk: Path):
    desk.home = small_disk
    (desk.home / "config.yaml").write_text(desk.config)
    desk.works()
    filler = fill(small_disk)
    said = desk.ask("-c", "-z", "And?")

    assert (said.code, said.out) == (1, "")
    assert said.err == (
        f"No room left on the disk of {desk.home}/hermes.db. Nothing that was saved before is lost; make room and try "
        "again.\n"
    )
    filler.unlink()
    assert desk.ask("-c", "-z", "And?").out == "Hello.\n"
    assert [message.text for message in desk.server.asked[-1].messages][:2] == ["Hi", "Hello."]


def test_a_disk_that_fills_up_in_mid_run_stops_with_the_reason_and_goes_on_when_there_is_room(
    desk: Desk, small_disk: Path
):
    desk.home = small_disk
    (desk.home / "config.yaml").write_text(desk.config)
    desk.calls = [Call("terminal", {"command": "head -c 10M /dev/zero > /tmp/filler; echo done"})]
    said = desk.ask()
    assert said.code == 1
    assert "No room left on the disk" in said.err
    next(small_disk.rglob("filler")).unlink()  # behind the wall it lies in the folder of the session

    assert desk.ask("-c", "-z", "").out == "Hello.\n"


def test_a_database_of_a_later_version_is_left_alone(desk: Desk):
    desk.works()
    with sqlite3.connect(desk.home / "hermes.db") as database:
        database.execute("PRAGMA user_version = 9999")
    database.close()
    before = (desk.home / "hermes.db").read_bytes()
    said = desk.ask()

    assert (said.code, said.out) == (1, "")
    assert "was made by a later version of Hermes (its format is 9999, this one knows" in said.err
    assert (desk.home / "hermes.db").read_bytes() == before


def test_a_database_that_is_garbage_is_left_alone(desk: Desk):
    garbage = b"this is no database" * 1000
    (desk.home / "hermes.db").write_bytes(garbage)
    said = desk.ask()

    assert (said.code, said.out) == (1, "")
    assert f"{desk.home}/hermes.db is not a database." in said.err
    assert (desk.home / "hermes.db").read_bytes() == garbage


def test_two_processes_on_one_home_both_answer_in_sessions_of_their_own(desk: Desk):
    children = [started("-z", f"Number {number}", home=desk.home, folder=desk.work) for number in range(2)]
    said = [said_by(child) for child in children]

    assert [(each.code, each.out) for each in said] == [(0, "Hello.\n")] * 2
    assert sorted(heard.messages[0].text for heard in desk.server.asked) == ["Number 0", "Number 1"]
    assert all(len(heard.messages) == 1 for heard in desk.server.asked)
    with sqlite3.connect(desk.home / "hermes.db") as database:
        assert database.execute("SELECT count(*) FROM session").fetchone() == (2,)
    database.close()


async def test_a_clock_that_goes_backwards_disturbs_nothing(tmp_path: Path):
    clock = FakeClock(now=1_800_000_000.0)
    harness = Harness(tmp_path, ScriptedModel(lambda heard: Say(f"Reply to {heard.last.text}.")), clock=clock)
    async with harness.open():
        await harness.say("One")
        clock.set_now(1_700_000_000.0)
        assert (await harness.say("Two")).text == "Reply to Two."
    clock.set_now(0.0)
    async with harness.open():
        assert (await harness.say("Three")).text == "Reply to Three."
        log = await harness.log()

        assert [entry.number for entry in log] == list(range(1, len(log) + 1))
        assert [line for line in await harness.transcript() if line.startswith("user")] == [
            "user: One",
            "user: Two",
            "user: Three",
        ]


def test_the_folder_may_be_gone(desk: Desk):
    gone = desk.work / "gone"
    gone.mkdir()
    said = desk.ask(before=["sh", "-c", f'cd {gone} && rmdir {gone} && exec "$0" "$@"'])

    assert said.code == 4
    assert said.err == "The folder that you are in cannot be used (No such file or directory): change to another.\n"


def test_fifty_megabytes_of_output_are_shown_by_their_ends_and_kept_whole(desk: Desk):
    (shown,) = desk.results(Call("terminal", {"command": f"seq 1 9999999 | head -c {50 * MB}", "timeout": 30}))

    assert len(shown.encode()) <= 50_000
    assert shown.startswith("1\n2\n3\n")
    assert shown.endswith("[exit 0]")
    assert f"{50 * MB:,} bytes; the middle is left out, the whole is in " in shown
    whole = Path(shown.partition("the whole is in ")[2].partition("]")[0])
    assert whole.stat().st_size == 50 * MB
    assert max(len(exchange.request.body) for exchange in desk.server.exchanges) < 200_000


def test_a_file_of_fifty_megabytes_in_one_line_is_shown_in_part(desk: Desk):
    (desk.work / "big.txt").write_bytes(b"y" * (50 * MB))
    (shown,) = desk.results(Call("read_file", {"path": "big.txt"}))

    assert len(shown) < 50_000
    assert "more characters" in shown


def test_binary_output_and_files_are_named_as_such(desk: Desk):
    (desk.work / "data.bin").write_bytes(bytes(range(256)) * 100)
    output, file = desk.results(
        Call("terminal", {"command": "head -c 100000 /dev/zero"}), Call("read_file", {"path": "data.bin"})
    )

    assert "[the output is binary, 100,000 bytes; it is in " in output
    assert "data.bin is binary data, 25,600 bytes, not text." in file


def test_invalid_utf8_is_shown_and_kept(desk: Desk):
    content = "Grüße\n".encode("latin-1")
    (desk.work / "latin.txt").write_bytes(content)
    (desk.work / os.fsdecode(b"na\xffme.txt")).write_text("x")
    output, file, written, names = desk.results(
        Call("terminal", {"command": r"printf 'a\377b\n'"}),
        Call("read_file", {"path": "latin.txt"}),
        Call("write_file", {"path": "latin.txt", "content": "Grüße\n"}),
        Call("search_files", {"pattern": "*.txt", "target": "files"}),
    )

    assert output == "a\ufffdb\n[exit 0]"
    assert "Gr\ufffd\ufffde" in file
    assert "bytes that are not text" in written
    assert (desk.work / "latin.txt").read_bytes() == content
    assert "me.txt" in names


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder that is not below /tmp, where everybody may write."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


def test_a_path_outside_and_a_link_out_need_a_person(desk: Desk, elsewhere: Path):
    (elsewhere / "kept.txt").write_text("kept")
    (desk.work / "link.txt").symlink_to(elsewhere / "kept.txt")
    outside, link, made = desk.results(
        Call("write_file", {"path": str(elsewhere / "new.txt"), "content": "x"}),
        Call("patch", {"path": "link.txt", "old_string": "kept", "new_string": "lost"}),
        Call("terminal", {"command": f"echo lost > {elsewhere}/kept.txt"}),
    )

    for refused, path in ((outside, "new.txt"), (link, "kept.txt")):
        assert '"kind": "unapproved"' in refused
        assert f"it writes outside the workspace ({elsewhere / path})" in refused
        assert "no person is here" in refused
    assert f"[the wall stopped it (it seems: {elsewhere}/kept.txt is not shown to it); outside=true" in made
    assert (elsewhere / "kept.txt").read_text() == "kept"
    assert not (elsewhere / "new.txt").exists()


@pytest.mark.parametrize("path", ["/proc/1/root/x", "closed/x", "closed/in/x"])
def test_a_path_that_may_not_be_followed_is_told_in_a_sentence(desk: Desk, unable: list[str], path: str):
    (desk.work / "closed/in").mkdir(parents=True)
    (desk.work / "closed").chmod(0)
    results = desk.results(
        Call("read_file", {"path": path}),
        Call("write_file", {"path": path, "content": "x"}),
        Call("patch", {"path": path, "old_string": "a", "new_string": "b"}),
        Call("search_files", {"pattern": "x", "path": path}),
        Call("terminal", {"command": f"echo x > {path}"}),
        Call("terminal", {"command": "true", "workdir": path}),
        before=unable,
    )
    (desk.work / "closed").chmod(0o700)

    assert [each for each in results if "The tool failed" in each or "Error:" in each] == []
    assert len(results) == 6


def test_what_is_no_file_is_not_read(desk: Desk):
    os.mkfifo(desk.work / "pipe")
    (desk.work / "null").symlink_to("/dev/null")
    zero, pipe, link, kernel = desk.results(
        Call("read_file", {"path": "/dev/zero"}),
        Call("read_file", {"path": "pipe"}),
        Call("write_file", {"path": "null", "content": "x"}),
        Call("read_file", {"path": "/proc/self/environ"}),
    )

    assert "/dev/zero was refused: it is a device or a view of the kernel, not a file." in zero
    assert "pipe is a pipe, not a file." in pipe
    assert "null was refused: it is a device" in link
    assert "/proc/self/environ was refused" in kernel
