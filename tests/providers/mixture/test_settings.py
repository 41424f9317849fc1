"""The section `moa`."""

from hermes_agent.app.settings import Settings
from hermes_agent.host.config import load
from hermes_agent.host.paths import Home


def test_a_mixture_is_read_and_what_is_wrong_is_told_with_its_line(tmp_path):
    home = Home(root=tmp_path, base=tmp_path)
    home.config_file.write_text("moa:\n  council:\n    members: [a/b, c/d]\n    agregator: a/b\n    seconds: 0\n")

    loaded = load(home, Settings)

    said = [str(problem) for problem in loaded.problems]
    assert any("config.yaml:4" in each and "aggregator" in each for each in said)
    assert any("config.yaml:5" in each and "at least 1" in each for each in said)
