"""The person of this machine."""

from hermes_agent.app.local_owner import local_owner
from hermes_agent.core.inbound import Standing


def test_the_person_of_this_machine_is_the_owner():
    assert local_owner().standing is Standing.OWNER
