"""Where the files of each hash stand: whole, or not there."""

from pathlib import Path

from hermes_agent.skills.depot import HOUR, NEW, Content, Depot, hash_of_files, stored

FILES = {"SKILL.md": Content(content=b"x"), "scripts/run": Content(content=b"y", runs=True)}
FOUND = hash_of_files(FILES)


def test_what_is_kept_is_what_was_given(tmp_path: Path):
    Depot(tmp_path).keep("tea", FILES, FOUND)
    Depot(tmp_path).keep("tea", FILES, FOUND)
    assert Depot(tmp_path).files(FOUND, "tea") == FILES


def test_the_right_to_run_is_part_of_the_hash():
    assert hash_of_files({**FILES, "scripts/run": Content(content=b"y")}) != FOUND


def test_a_damaged_folder_is_replaced(tmp_path: Path):
    depot = Depot(tmp_path)
    depot.keep("tea", FILES, FOUND)
    (stored(tmp_path, FOUND, "tea") / "SKILL.md").write_text("damaged")
    depot.take(depot.hold("tea", FILES), FOUND)
    assert depot.files(FOUND, "tea") == FILES


def test_what_nothing_needs_is_swept_and_what_is_being_written_is_not(tmp_path: Path):
    depot = Depot(tmp_path)
    depot.sweep((), 0.0)
    depot.keep("tea", FILES, FOUND)
    held = depot.hold("tea", FILES)
    writing = stored(tmp_path, FOUND, "tea").parent.parent / f"{NEW}abc"
    writing.mkdir()
    now = writing.stat().st_mtime

    depot.sweep({(FOUND, "tea")}, now)
    assert (held.exists(), writing.exists(), depot.files(FOUND, "tea")) == (False, True, FILES)
    depot.sweep((), now + HOUR + 1)
    assert (writing.exists(), depot.files(FOUND, "tea")) == (False, {})
