"""`hermes pairing`: who waits, who was let in."""

import json
from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError
from tests.cli.shell import typed


def test_who_waits_is_listed_and_forgotten(tmp_path: Path):
    assert "No code is pending" in typed(tmp_path, "pairing", "list").out
    assert json.loads(typed(tmp_path, "pairing", "list", "--json").out) == {"waiting": [], "paired": []}
    with pytest.raises(HermesError, match="This code is unknown"):
        typed(tmp_path, "pairing", "approve", "AAAABBBB")
    assert typed(tmp_path, "pairing", "clear").out == "0 codes deleted.\n"
    assert "was not admitted" in typed(tmp_path, "pairing", "revoke", "telegram", "7").out
