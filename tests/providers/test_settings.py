"""What would switch a limit of money off: a price below nothing, in the settings and from a provider."""

from pathlib import Path

import pytest

from tests.cli.shell import typed


@pytest.mark.parametrize(
    "lines",
    [
        "model:\n  price_input: -1\n",
        "model:\n  price_output: -0.5\n",
        "models:\n  custom/m:\n    price:\n      input: -3\n",
        "models:\n  custom/m:\n    price:\n      long:\n        output: -3\n",
        "model:\n  price_input: .nan\n",
    ],
)
def test_a_price_below_nothing_is_a_mistake_with_its_line(tmp_path: Path, lines: str):
    (tmp_path / "config.yaml").write_text(lines)

    said = typed(tmp_path, "config", "check")

    assert said.code != 0
    assert f"config.yaml:{lines.count(chr(10))}" in said.out + said.err
