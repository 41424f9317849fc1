"""Public ids of runs."""

import pytest

from hermes_agent.api.run_view import CHAT, Ref, ref_of


def test_a_public_id_leads_back_to_its_run():
    ref = Ref(session="20260101_120000_ab12cd", row=7)
    assert ref_of(ref.id()) == ref_of(ref.id(CHAT)) == ref


@pytest.mark.parametrize("name", ["", "run_x_1", "run_20260101_120000_ab12cd_0", "other_20260101_120000_ab12cd_1"])
def test_what_is_no_public_id_names_no_run(name: str):
    assert ref_of(name) is None
