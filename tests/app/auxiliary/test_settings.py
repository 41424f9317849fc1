"""The section `auxiliary`."""

import pytest

from hermes_agent.app.auxiliary.settings import AuxiliarySettings, Purpose
from hermes_agent.app.settings import Settings
from hermes_agent.host.config import load
from hermes_agent.host.paths import Home


@pytest.mark.parametrize("purpose", Purpose)
def test_every_purpose_has_a_section_and_by_default_the_model_that_answers(purpose):
    assert AuxiliarySettings().of(purpose).model == ""


@pytest.mark.parametrize(
    ("written", "said"),
    [("titel:\n    model: x/y\n", "title"), ("title:\n    seconds: 0\n", "at least 1"), ("web: fast\n", "section")],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path, written, said):
    home = Home(root=tmp_path, base=tmp_path)
    home.config_file.write_text(f"auxiliary:\n  {written}")

    (problem,) = load(home, Settings).problems

    assert said in str(problem)
    assert "config.yaml:" in str(problem)
