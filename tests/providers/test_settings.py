"""What would switch a limit of money off: a price below nothing, in the settings and from a provider."""

from pathlib import Path

import pytest

from hermes_agent.app.settings import Settings
from hermes_agent.host.config import load
from hermes_agent.host.paths import Home
from tests.cli.shell import typed


@pytest.mark.parametrize(
    "lines",
    [
        "model:\n  price_input: -1\n",
        "model:\n  price_output: -0.5\n",
        "models:\n  custom/m:\n    price:\n      input: -3\n",
        "model:\n  price_input: .nan\n",
    ],
)
def test_a_price_below_nothing_is_a_mistake_with_its_line(tmp_path: Path, lines: str):
    (tmp_path / "config.yaml").write_text(lines)

    said = typed(tmp_path, "config", "check")

    assert said.code != 0
    assert f"config.yaml:{lines.count(chr(10))}" in said.out + said.err


def test_a_mixture_is_read_and_what_is_wrong_is_told_with_its_line(tmp_path):
    home = Home(root=tmp_path, base=tmp_path)
    home.config_file.write_text("moa:\n  council:\n    members: [a/b, c/d]\n    agregator: a/b\n    seconds: 0\n")

    loaded = load(home, Settings)

    said = [str(problem) for problem in loaded.problems]
    assert any("config.yaml:4" in each and "aggregator" in each for each in said)
    assert any("config.yaml:5" in each and "at least 1" in each for each in said)
