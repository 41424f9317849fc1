"""`hermes pairing`: who waits, who was let in."""

import json
from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError
from tests.cli.shell import typed


def test_who_waits_is_listed_and_forgotten(tmp_path: Path):
    assert "Nobody waits" in typed(tmp_path, "pairing", "list").out
    assert json.loads(typed(tmp_path, "pairing", "list", "--json").out) == {"waiting": [], "paired": []}
    with pytest.raises(HermesError, match="Nobody was given this code"):
        typed(tmp_path, "pairing", "approve", "AAAABBBB")
    assert typed(tmp_path, "pairing", "clear").out == "0 codes are forgotten.\n"
    assert "was not let in" in typed(tmp_path, "pairing", "revoke", "telegram", "7").out
