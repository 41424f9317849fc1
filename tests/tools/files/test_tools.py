"""The file tools as a model meets them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import Refused, StaleWrite, ToolError
from tests.tools.bench import Bench, words


async def test_a_file_is_written_read_and_patched(files: Bench, workspace: Path) -> None:
    assert await files("write_file", path="src/a.py", content="x = 1\ny = 2\n") == "Created src/a.py, 2 lines."
    assert await files("read_file", path="src/a.py") == "1|x = 1\n2|y = 2"

    answer = await files("patch", path="src/a.py", old_string="y = 2", new_string="y = 3")

    assert answer.startswith(
        "Patched src/a.py.\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1,3 +1,3 @@\n x = 1\n-y = 2\n+y = 3"
    )
    assert (workspace / "src/a.py").read_text() == "x = 1\ny = 3\n"


async def test_an_existing_file_is_overwritten_only_when_it_was_read(files: Bench, workspace: Path) -> None:
    (workspace / "a.txt").write_text("precious")

    with pytest.raises(StaleWrite, match="was not read"):
        await files("write_file", path="a.txt", content="new")
    await files("read_file", path="a.txt")
    answer = await files("write_file", path="a.txt", content="new")

    assert "-precious\n+new" in answer
    assert (workspace / "a.txt").read_text() == "new"


@pytest.mark.parametrize("tool", ["write_file", "patch"])
async def test_a_stale_write_is_refused_and_changes_nothing(files: Bench, workspace: Path, tool: str) -> None:
    (workspace / "a.txt").write_text("one")
    await files("read_file", path="a.txt")
    (workspace / "a.txt").write_text("one, two")

    arguments = {"content": "x"} if tool == "write_file" else {"old_string": "one", "new_string": "x"}
    with pytest.raises(StaleWrite, match="changed since"):
        await files(tool, path="a.txt", **arguments)

    assert (workspace / "a.txt").read_text() == "one, two"


async def test_what_a_session_wrote_itself_it_may_write_again(files: Bench, workspace: Path) -> None:
    await files("write_file", path="a.txt", content="one")
    await files("patch", path="a.txt", old_string="one", new_string="two")
    await files("write_file", path="a.txt", content="three")

    assert (workspace / "a.txt").read_text() == "three"


async def test_a_resumed_session_still_knows_what_it_read(make_files: Callable[..., Bench], workspace: Path) -> None:
    (workspace / "a.txt").write_text("one")
    await make_files()("read_file", path="a.txt")

    assert "+two" in await make_files()("write_file", path="a.txt", content="two")


async def test_another_session_does_not(make_files: Callable[..., Bench], workspace: Path) -> None:
    (workspace / "a.txt").write_text("one")
    await make_files(session="s1")("read_file", path="a.txt")

    with pytest.raises(StaleWrite):
        await make_files(session="s2")("write_file", path="a.txt", content="two")


async def test_a_write_that_had_happened_before_a_crash_is_answered_the_same_and_not_done_again(
    make_files: Callable[..., Bench], workspace: Path
) -> None:
    (workspace / "a.txt").write_text("n = 1\n")
    arguments = {"path": "a.txt", "old_string": "n = ", "new_string": "n = n = "}
    first = words(await make_files().answer("patch", arguments, call="call_7"))

    again = words(await make_files().answer("patch", arguments, call="call_7", attach=True))

    assert again == first
    assert (workspace / "a.txt").read_text() == "n = n = 1\n"


def test_writes_are_keyed_by_their_path(files: Bench, workspace: Path) -> None:
    facts = files.tools["write_file"].facts({"path": "src/../a.txt", "content": ""}, str(workspace))

    assert facts.effect is Effect.KEYED
    assert facts.paths == (str(workspace.resolve() / "a.txt"),)


async def test_bytes_that_are_not_utf8_survive_a_patch(files: Bench, workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"caf\xe9\none\n\xff\xfe\n")

    await files("patch", path="a.txt", old_string="one", new_string="two")

    assert (workspace / "a.txt").read_bytes() == b"caf\xe9\ntwo\n\xff\xfe\n"


async def test_a_whole_write_that_would_destroy_such_bytes_is_refused(files: Bench, workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"caf\xe9\n")
    await files("read_file", path="a.txt")

    with pytest.raises(ToolError, match="not text"):
        await files("write_file", path="a.txt", content="caf\ufffd\n")

    assert (workspace / "a.txt").read_bytes() == b"caf\xe9\n"


async def test_windows_line_endings_stay(files: Bench, workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")

    await files("patch", path="a.txt", old_string="one\ntwo\n", new_string="1\n2\n")

    assert (workspace / "a.txt").read_bytes() == b"1\r\n2\r\nthree\r\n"


async def test_half_a_surrogate_pair_is_refused(files: Bench, workspace: Path) -> None:
    with pytest.raises(ToolError, match="surrogate"):
        await files("write_file", path="a.txt", content="\ud800")

    assert not (workspace / "a.txt").exists()


async def test_a_linked_file_is_changed_where_it_is(files: Bench, workspace: Path) -> None:
    (workspace / "real.txt").write_text("one")
    (workspace / "link.txt").symlink_to("real.txt")

    await files("patch", path="link.txt", old_string="one", new_string="two")

    assert (workspace / "link.txt").is_symlink()
    assert (workspace / "real.txt").read_text() == "two"


async def test_a_binary_file_is_not_patched(files: Bench, workspace: Path) -> None:
    (workspace / "a.bin").write_bytes(b"abc\0def")

    with pytest.raises(ToolError, match="binary data"):
        await files("patch", path="a.bin", old_string="abc", new_string="x")


@pytest.mark.parametrize("tool", ["read_file", "write_file", "patch", "search_files"])
async def test_devices_pipes_and_what_is_closed_are_refused_by_every_tool(
    files: Bench, workspace: Path, tmp_path: Path, tool: str
) -> None:
    os.mkfifo(workspace / "pipe")
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "secret.txt").write_text("secret")
    (workspace / "out").symlink_to(closed)
    rest = {
        "read_file": {},
        "write_file": {"content": "x"},
        "patch": {"old_string": "secret", "new_string": "x"},
        "search_files": {"pattern": "secret"},
    }[tool]

    for path in ("/dev/zero", "../closed/secret.txt", "out/secret.txt", str(closed / "secret.txt")):
        with pytest.raises(Refused):
            await files(tool, path=path, **rest)
    if tool != "search_files":
        with pytest.raises(Refused, match="a pipe"):
            await files(tool, path="pipe", **rest)

    assert (closed / "secret.txt").read_text() == "secret"


async def test_a_missing_file_is_answered_with_what_is_near(files: Bench, workspace: Path) -> None:
    (workspace / "main.py").touch()

    for tool, rest in (("read_file", {}), ("patch", {"old_string": "a", "new_string": "b"})):
        with pytest.raises(ToolError) as caught:
            await files(tool, path="mian.py", **rest)
        assert caught.value.hint == "Did you mean main.py?"


async def test_contents_are_searched_with_places_to_read_on(files: Bench, workspace: Path) -> None:
    (workspace / "src").mkdir()
    (workspace / "src" / "a.py").write_text("one\ndef find():\n    pass\n")
    (workspace / "b.py").write_text("find()\n")

    assert await files("search_files", pattern=r"find\(") == "b.py:1: find()\nsrc/a.py:2: def find():"
    assert await files("search_files", pattern="find", path="src") == "src/a.py:2: def find():"
    assert await files("search_files", pattern="find", path="src/a.py") == "src/a.py:2: def find():"
    assert await files("search_files", pattern="find", output_mode="files_only") == "b.py\nsrc/a.py"
    assert await files("search_files", pattern="find", output_mode="count") == "b.py: 1\nsrc/a.py: 1"
    assert await files("search_files", pattern="*.py", target="files") == "b.py\nsrc/a.py"
    assert await files("search_files", pattern="nowhere") == "Nothing found."
    around = await files("search_files", pattern="find", context_lines=1)
    assert around == "b.py:1: find()\n--\nsrc/a.py:1- one\nsrc/a.py:2: def find():\nsrc/a.py:3-     pass"


async def test_many_results_are_paged(files: Bench, workspace: Path) -> None:
    (workspace / "a").write_text("".join(f"hit {number}\n" for number in range(10)))

    first = await files("search_files", pattern="hit", limit=4)
    last = await files("search_files", pattern="hit", limit=4, offset=8)

    assert first.splitlines()[-2:] == ["a:4: hit 3", "[10 results; go on with offset=4]"]
    assert last.splitlines() == ["a:9: hit 8", "a:10: hit 9"]
    assert await files("search_files", pattern="hit", offset=50) == "There are only 10 results."


async def test_credentials_are_not_found_by_a_search(files: Bench, workspace: Path) -> None:
    (workspace / "server.pem").write_text("find me")
    (workspace / "a.txt").write_text("find me")

    assert await files("search_files", pattern="find") == "a.txt:1: find me"
    assert await files("search_files", pattern="*", target="files") == "a.txt"


@pytest.fixture
def small_disk(workspace: Path) -> Iterator[Path]:
    disk = workspace / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=False).returncode:
        pytest.skip("this machine does not let us mount a small disk")
    yield disk
    subprocess.run(["umount", disk], check=True)


async def test_a_full_disk_is_a_sentence_and_the_old_content_stands(files: Bench, small_disk: Path) -> None:
    await files("write_file", path="disk/a.txt", content="old")

    with pytest.raises(ToolError, match="disk is full"):
        await files("write_file", path="disk/a.txt", content="x" * 200_000)

    assert (small_disk / "a.txt").read_text() == "old"
    assert "+new" in await files("patch", path="disk/a.txt", old_string="old", new_string="new")
