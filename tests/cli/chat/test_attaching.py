import asyncio
from pathlib import Path

import pytest

from hermes_agent.app.intake import Intake
from hermes_agent.cli.chat.attaching import FileIndex, at, attached_in, clipboard_picture, pasted_files, take
from hermes_agent.core.errors import HermesError
from hermes_agent.core.messages import Image, Origin, Text

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40


def words_in(parts) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").write_text("print(1)\n")
    (tmp_path / "my notes.md").write_text("note\n")
    (tmp_path / "shot.png").write_bytes(PNG)
    return tmp_path


@pytest.fixture
def intake(tmp_path: Path) -> Intake:
    async def window(_: str) -> int:
        return 100_000

    return Intake(tmp_path / "kept", window)


def test_words_with_an_at_that_name_a_file_attach_it_once(folder: Path):
    text = 'see @src/app.py, @src/app.py and @"my notes.md"; not @src, me@src/app.py or @nobody'

    assert [each.name for each in attached_in(text, str(folder))] == ["src/app.py", "my notes.md"]
    assert attached_in("@" + "x" * 5_000, str(folder)) == []


async def test_text_and_pictures_are_attached_as_what_they_are(folder: Path, intake: Intake):
    taken = await take(intake, attached_in("@src/app.py @shot.png", str(folder)), 100_000)

    assert words_in(taken.parts).strip() == "src/app.py:\nprint(1)"
    assert [part.media_type for part in taken.parts if isinstance(part, Image)] == ["image/png"]
    assert {part.origin for part in taken.parts} == {Origin.FILE}


async def test_a_picture_of_40_mb_is_named_and_not_sent(folder: Path, intake: Intake):
    with (folder / "big.png").open("wb") as file:
        file.write(PNG)
        file.truncate(40_000_000)

    taken = await take(intake, attached_in("@big.png", str(folder)), 100_000)

    assert not any(isinstance(part, Image) for part in taken.parts)
    assert "40,000,000 bytes" in words_in(taken.parts)
    assert str(folder / "big.png") in taken.notice


async def test_a_document_is_attached_as_its_text_and_a_damaged_one_is_told(folder: Path, intake: Intake):
    (folder / "book.ipynb").write_text('{"nbformat": 4, "cells": [{"cell_type": "markdown", "source": ["Hi"]}]}')
    (folder / "bad.pdf").write_bytes(b"%PDF-1.4 nothing")

    taken = await take(intake, attached_in("@book.ipynb", str(folder)), 100_000)

    assert "Hi" in words_in(taken.parts)
    with pytest.raises(HermesError, match=r"bad\.pdf cannot be read: "):
        await take(intake, attached_in("@bad.pdf", str(folder)), 100_000)


async def test_too_many_files_are_refused_in_a_sentence(folder: Path, intake: Intake):
    for number in range(21):
        (folder / f"f{number}").touch()
    files = attached_in(" ".join(f"@f{number}" for number in range(21)), str(folder))

    with pytest.raises(HermesError, match="21 files"):
        await take(intake, files, 100_000)


def test_a_dropped_file_becomes_a_word_that_attaches_it(folder: Path):
    assert pasted_files(f"{folder}/shot.png") == f"@{folder}/shot.png "
    assert pasted_files(f"'{folder}/my notes.md'") == f'@"{folder}/my notes.md" '
    assert pasted_files(f"file://{folder}/my%20notes.md\n") == f'@"{folder}/my notes.md" '
    for other in ("/usr/bin is a folder", "hello", f"{folder}/none.png", f"{folder}/shot.png\nmore", "'/x", ""):
        assert pasted_files(other) == ""


def test_the_index_holds_files_and_is_read_again_for_another_folder(folder: Path):
    here = str(folder)
    index = FileIndex(lambda: here)
    assert index.names() == ["my notes.md", "shot.png", "src/app.py"]
    here = str(folder / "src")
    assert index.names() == ["app.py"]


async def test_the_picture_in_the_clipboard_is_attached(folder: Path, tmp_path: Path):
    programs = tmp_path / "bin"
    programs.mkdir()
    script = programs / "wl-paste"
    script.write_text(f"#!/bin/sh\ncat {folder}/shot.png\n")
    script.chmod(0o755)

    word = await clipboard_picture(tmp_path / "kept", {"PATH": f"{programs}:/usr/bin:/bin"})

    assert word.startswith("@")
    assert await asyncio.to_thread(Path(word[1:]).read_bytes) == PNG
    script.write_text("#!/bin/sh\necho no >&2\nexit 1\n")
    with pytest.raises(HermesError, match="no picture in the clipboard"):
        await clipboard_picture(tmp_path / "kept", {"PATH": f"{programs}:/usr/bin:/bin"})
    with pytest.raises(HermesError, match="install"):
        await clipboard_picture(tmp_path / "kept", {"PATH": str(tmp_path)})


def test_a_name_with_a_blank_is_quoted():
    assert (at("a.py"), at("my notes.md")) == ("@a.py", '@"my notes.md"')
