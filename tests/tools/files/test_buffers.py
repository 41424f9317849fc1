"""What an editor holds of files and did not save."""

from pathlib import Path

import pytest

from hermes_agent.tools.files.buffers import Buffers

Told = dict[str, str]


def buffers(told: Told) -> Buffers:
    async def read(path: str) -> str | None:
        return told.get(path)

    made = Buffers()
    made.put("s", read)
    return made


@pytest.mark.parametrize(
    ("disk", "text", "content"),
    [
        (b"a\n", "a\n", None),
        (b"a\n", "b\n", b"b\n"),
        (b"a\r\nb\r\n", "a\nb\n", None),
        (b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n"),
        (b"\xef\xbb\xbfa\n", "a\n", None),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        (b"", "new\n", b"new\n"),
        (b"\x89PNG\r\n\x1a\n\0\0", "picture?", None),
    ],
)
async def test_only_another_text_counts_in_the_files_own_encoding(
    tmp_path: Path, disk: bytes, text: str, content: bytes | None
):
    file = tmp_path / "a"
    file.write_bytes(disk)
    found = await buffers({str(file): text}).unsaved("s", [file], str(tmp_path))
    assert found.get(file) == content


async def test_files_elsewhere_and_other_sessions_are_not_asked_about(tmp_path: Path):
    inside, outside, gone = tmp_path / "in/a", tmp_path / "b", tmp_path / "in/gone"
    inside.parent.mkdir()
    inside.write_text("disk")
    outside.write_text("disk")
    told = buffers(dict.fromkeys(map(str, (inside, outside, gone)), "text"))

    assert await told.unsaved("other", [inside], str(tmp_path / "in")) == {}
    assert await told.unsaved("s", [inside, outside, gone], str(tmp_path / "in")) == {inside: b"text"}
    told.drop("s")
    assert not told.has("s")
