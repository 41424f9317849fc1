from pathlib import Path

import pytest

from hermes_agent.app.operations.checkpoints import folder_of, line_of, restore_report
from hermes_agent.core.errors import HermesError
from hermes_agent.tools.checkpoints.checkpoints import Cause, Checkpoint, Restored

PART = Checkpoint(number=3, commit="c", tree="t", at=0.0, told=Cause(why="patch: a", whole=False))


def test_a_checkpoint_in_a_line():
    assert line_of(PART).startswith("   3  19")
    assert line_of(PART).endswith("before patch: a  (only the files that were changed)")


def test_a_restore_in_words():
    many = Restored(written=tuple(map(str, range(21))), removed=("gone",), undo=PART)

    assert restore_report(Restored(written=(), removed=(), undo=PART), 2) == "Nothing changed since checkpoint 2."
    assert restore_report(many, 2).endswith("\n  19\n  and 2 more\nTo undo this, restore checkpoint 3.")


def test_a_folder_is_where_one_is_or_named_from_there(tmp_path: Path):
    (tmp_path / "a").mkdir()

    assert folder_of("", tmp_path) == tmp_path
    assert folder_of("a", tmp_path) == tmp_path / "a"
    with pytest.raises(HermesError, match="is not a folder"):
        folder_of("b", tmp_path)
