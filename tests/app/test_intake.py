"""What stands in a message for something that is too large for it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_agent.app.intake import LEAST, Intake, Part, limit, named, spool, without_files
from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.sessions import branch_session, delete_session
from hermes_agent.app.process import Options
from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import HermesError, HomeError, InputTooLarge, StoreError
from hermes_agent.core.messages import File, Image, Origin, Text
from hermes_agent.core.tool import tool
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.tools.schema import collect
from tests.app.place import Place, place

WINDOW = 32_000
"""Of which a message has 32,000 bytes."""


async def any_window(_: str) -> int:
    return WINDOW


def intake(folder: Path, *, strict: bool = False) -> Intake:
    return Intake(folder / "kept", any_window, strict=strict)


def owner(text: str) -> Text:
    return Text(text=text, origin=Origin.OWNER)


def joined(parts: tuple[Part, ...]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


def test_a_share_of_the_window_stands_in_the_message_and_a_little_always() -> None:
    assert (limit(128_000), limit(1_000_000), limit(500)) == (128_000, 1_000_000, LEAST)


def test_what_fits_is_left_as_it_is(tmp_path: Path) -> None:
    parts = (owner("x" * limit(WINDOW)), Image(data="eA=="))

    assert intake(tmp_path).fitted(parts, WINDOW).parts == parts
    assert not (tmp_path / "kept").exists()


def test_the_largest_parts_become_files_and_the_words_beside_them_stay(tmp_path: Path) -> None:
    large = "first\n" + "ä" * 30_000 + "\nlast"
    taken = intake(tmp_path).fitted((owner("Compare:"), owner(large), owner("y" * 20_000)), WINDOW)

    (kept,) = (tmp_path / "kept").iterdir()
    assert kept.read_text() == large
    assert taken.parts[0] == owner("Compare:")
    assert taken.parts[1].text.startswith("first\nä")
    assert taken.parts[1].text.endswith("ä\nlast")
    assert "\ufffd" not in taken.parts[1].text
    assert taken.parts[1].origin is Origin.OWNER
    assert (taken.parts[2].origin, str(kept) in taken.parts[2].text) == (Origin.RUNTIME, True)
    assert taken.parts[3] == owner("y" * 20_000)
    assert len(joined(taken.parts).encode()) < limit(WINDOW) + 10_000


def test_many_parts_that_are_too_much_together_are_kept_until_the_rest_fits(tmp_path: Path) -> None:
    taken = intake(tmp_path).fitted([owner(f"{number}" * 9_000) for number in range(1, 10)], WINDOW)

    assert len(list((tmp_path / "kept").iterdir())) == 6
    assert taken.notice.count("is too large for the model's window") == 6


def test_a_document_is_kept_as_it_was(tmp_path: Path) -> None:
    content = b"%PDF-1.7\n" + bytes(50_000)
    document = File(name="a.pdf", media_type="application/pdf", data=base64.b64encode(content).decode())
    taken = intake(tmp_path).fitted((document,), WINDOW)

    (kept,) = (tmp_path / "kept").iterdir()
    assert (kept.suffix, kept.read_bytes()) == (".pdf", content)
    assert "(a PDF document, 50,009 bytes, kept whole in `" in joined(taken.parts)
    assert (
        taken.notice
        == f"A part of your message (a PDF document, 50,009 bytes) is not text, and kept as a file: `{kept}`."
    )


def test_a_name_leads_nowhere(tmp_path: Path) -> None:
    for name in ("../../evil.sh/..", "nul.a\0b", "x." + "e" * 300, ""):
        intake(tmp_path).fitted((File(name=name, media_type="x/y", data="eHh4" * 20_000),), WINDOW)

    (kept,) = (tmp_path / "kept").iterdir()
    assert kept.suffix == ".txt"


def test_a_picture_counts_little_until_no_provider_takes_it(tmp_path: Path) -> None:
    def picture(size: int) -> Image:
        return Image(data=base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(size)).decode())

    small = intake(tmp_path).fitted((picture(4_000_000), owner("Hi")), WINDOW)
    large = intake(tmp_path).fitted((picture(6_000_000), owner("Hi")), WINDOW)

    assert isinstance(small.parts[0], Image)
    assert "(image/png, 6,000,008 bytes, kept whole in `" in joined(large.parts)


def test_a_file_is_a_picture_a_text_or_a_note_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tmp_path / "t").write_bytes(b"text\xff")
    (tmp_path / "b").write_bytes(b"\x7fELF\0")

    def parts(name: str) -> tuple[Part, ...]:
        return intake(tmp_path).of_file(named(tmp_path / name), Origin.OWNER, WINDOW, name=name).parts

    assert isinstance(parts("p")[0], Image)
    assert parts("t") == (owner("t:\ntext\ufffd"),)
    assert f"(an ELF program, 5 bytes, kept whole in `{tmp_path}/b`." in joined(parts("b"))


def test_strict_input_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputTooLarge, match="The input has 32,001 bytes, and one message to this model may have 32,000"
    ):
        intake(tmp_path, strict=True).fitted((owner("x" * 32_001),), WINDOW)


def test_where_nothing_can_be_kept_nothing_is_taken_in(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file stands where the folder must be")

    with pytest.raises(StoreError, match="cannot be written"):
        intake(tmp_path).fitted((owner("x" * 40_000),), WINDOW)


def test_the_same_content_is_the_same_private_file(tmp_path: Path) -> None:
    first = spool(tmp_path / "kept", (b"one\n", b"two"))
    again = spool(tmp_path / "kept", (b"one\ntwo",))

    assert first == again
    assert (first.size, first.lines, first.path.read_bytes()) == (7, 1, b"one\ntwo")
    assert (first.path.stat().st_mode & 0o777, first.path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert list((tmp_path / "kept").iterdir()) == [first.path]


def test_what_breaks_off_leaves_no_half_of_a_file(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"one"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spool(tmp_path, broken())

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_used_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(HomeError, match=r"file cannot be written \(File exists\)"):
        spool(tmp_path / "file", (b"one",))


def test_a_file_that_is_there_is_counted_and_nothing_else_is_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\ntwo\n")

    assert (named(tmp_path / "a").size, named(tmp_path / "a").lines) == (8, 2)
    with pytest.raises(HermesError, match="is not a file"):
        named(tmp_path)
    with pytest.raises(HermesError, match="is not there"):
        named(tmp_path / "b")


LARGE = "a line of a large message\n" * 20_000


class Wordy:
    """A tool that says more than stands in an answer."""

    @tool(effect=Effect.READS)
    async def recite(self) -> str:
        """Recite it all."""
        return LARGE


def script(heard: Heard) -> Call | Say:
    return Call("recite", {}) if heard.last.text.startswith("Recite") else Say("Read.")


def files(here: Place) -> list[str]:
    cache = here.runtime.home.cache
    return sorted(path.parent.name for name in ("input", "results") for path in cache.glob(f"{name}/*"))


async def test_files_stay_as_long_as_any_session_names_them(tmp_path: Path):
    async with place(tmp_path, script, Options(extra_tools=collect([Wordy()])[0])) as here:
        await here.say(LARGE)
        await here.say("Recite")
        first, owner = here.record.id, Access(system=here.runtime, who=here.runtime.owner)
        branch = await branch_session(owner, first)
        await here.type("/new")
        await here.say(f"{LARGE}of this session alone")
        assert files(here) == ["input", "input", "results"]

        await delete_session(owner, first)
        assert files(here) == ["input", "input", "results"]
        await delete_session(owner, branch.id)
        assert files(here) == ["input"]
        async with without_files(here.runtime.store, here.runtime.home):
            assert await here.runtime.store.sessions.prune(here.runtime.clock.now() + 1) == (here.record.id,)
        assert files(here) == []


async def test_what_waits_to_be_read_keeps_its_file(tmp_path: Path):
    async with place(tmp_path, script) as here:
        store = here.runtime.store
        await here.say(LARGE)
        (name,) = (here.runtime.home.cache / "input").iterdir()
        await here.type("/new")
        await store.inbox.accept(here.inbound(f"Read {name}"), here.record.id, "later")

        async with without_files(store, here.runtime.home):
            await store.sessions.prune(here.runtime.clock.now() + 1)

        assert name.exists()


@pytest.mark.parametrize("name", ["cache/input/../../hermes.db", "cache/input/0123456789abcdef0123", "cache/inputs/x"])
async def test_a_log_that_names_what_is_no_such_file_deletes_nothing(tmp_path: Path, name: str):
    async with place(tmp_path, script) as here:
        await here.say(f"Look at {name}.")

        await delete_session(Access(system=here.runtime, who=here.runtime.owner), here.record.id)

        assert here.runtime.home.database.exists()
