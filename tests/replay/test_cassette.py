"""Cassettes as files: what is written can be read, nothing secret is in it, and what is wrong is told."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from hermes_agent.core import errors
from hermes_agent.core.errors import CassetteError, HermesError, LimitReached, ProviderError, ToolError
from hermes_agent.core.messages import TextDelta, ThinkingDelta
from hermes_agent.replay.cassette import CassetteFile, digest, read_cassette, whole_words, without_secrets
from hermes_agent.replay.lines import (
    KINDS,
    Line,
    Piece,
    Planned,
    RecordedSection,
    failed_call,
    line_of,
    noted,
    plain_of,
    raised,
)
from hermes_agent.replay.tracks import ids_of
from tests.replay.tapes import over, recorder


def hide(text: str) -> str:
    return text.replace("hush", "[secret]")


def test_a_line_is_read_as_it_was_written() -> None:
    line = Planned(id="1", name="look", error=noted(ToolError("No.", hint="Try.")))

    assert line_of(json.loads(json.dumps(plain_of(line)))) == line


def test_every_kind_of_line_is_known() -> None:
    assert {each.__dataclass_fields__["kind"].default for each in Line.__args__} == KINDS
    with pytest.raises(ValueError, match="no lines of kind 'x'"):
        line_of({"kind": "x"})


def test_only_the_owner_may_read_a_recording(tmp_path: Path) -> None:
    over(recorder(tmp_path))

    assert stat.S_IMODE((tmp_path / "tape.jsonl").stat().st_mode) == 0o600


def test_a_recording_can_be_paused_and_gone_on_with(tmp_path: Path) -> None:
    file = CassetteFile(tmp_path / "x.jsonl", str)
    for words in ("one", "two"):
        file.open()
        file.add(RecordedSection(track="1", name="a", words=words))
        file.close()

    assert [json.loads(line)["words"] for line in file.path.read_text().splitlines()] == ["one", "two"]


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(CassetteError, match="cannot be written"):
        CassetteFile(tmp_path / "none" / "x.jsonl", str).open()


def test_secrets_are_taken_out_of_every_text_and_name_also_over_pieces() -> None:
    plain = {"a hush": ["x hush y", {"n": 1, "t": None}]}
    split = [Piece(at=1, t=1, item=TextDelta(text=text)) for text in ("it is hu", "sh, yes", "")]
    thought = [Piece(at=1, t=1, item=ThinkingDelta(text="no secret"))]

    assert without_secrets(plain, hide) == {"a [secret]": ["x [secret] y", {"n": 1, "t": None}]}
    assert [piece.item.text for piece in whole_words([*split, *thought], hide)] == [
        "it is [secret], yes",
        "",
        "",
        "no secret",
    ]
    assert digest(["hush"], hide) == digest(["[secret]"], hide)


@pytest.mark.parametrize("kind", [each for each in vars(errors).values() if isinstance(each, type)])
def test_an_error_comes_back_as_it_was(kind: type[HermesError]) -> None:
    if not issubclass(kind, HermesError):
        return
    error = kind("It failed.", limit="turns") if kind is LimitReached else kind("It failed.")
    error.add_note("why")
    if isinstance(error, ProviderError):
        error.status, error.partial = 429, "half"
    again = failed_call(noted(error)) if isinstance(error, ToolError) else raised(noted(error))

    assert type(again) is kind
    assert str(again) == "It failed."
    assert getattr(again, "status", None) == getattr(error, "status", None)
    assert getattr(again, "limit", None) == getattr(error, "limit", None)


def test_a_defect_of_a_tool_comes_back_as_the_model_read_it() -> None:
    again = failed_call(noted(ValueError("oops")))

    assert (str(again), again.kind) == ("The tool failed: ValueError: oops", "failed")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "not a recording"),
        (b'{"kind":"told","track":"1","name":"a","words":"b"}\n', "not a recording"),
        (b"not json\n", ":1 is not a line"),
        (b'{"kind":"cassette","version":99}\n', "later version"),
        (b'{"kind":"cassette","version":1}\n', ":1 is not a line"),
        (b"[]\n", ":1 is not a line"),
    ],
)
def test_what_is_no_recording_is_refused_with_its_line(tmp_path: Path, content: bytes, what: str) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(CassetteError, match=what):
        read_cassette(tmp_path / "x")


def test_the_same_seed_gives_the_same_ids() -> None:
    assert ids_of("a", "1").short() == ids_of("a", "1").short() != ids_of("a", "2").short()
