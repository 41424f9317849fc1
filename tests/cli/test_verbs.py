"""The verbs of a noun on the command line."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from hermes_agent.app.operations.learning import CURATED, LEARNED
from hermes_agent.app.operations.memory import FACTS, NOTES
from hermes_agent.app.operations.verbs import Noun
from hermes_agent.cli.verbs import group_of


@pytest.mark.parametrize("noun", [NOTES, FACTS, LEARNED, CURATED], ids=lambda noun: noun.name)
def test_each_verb_is_a_command_with_the_arguments_that_its_slash_form_has(noun: Noun) -> None:
    group = group_of(noun)
    for verb in noun.verbs:
        command = group.commands[verb.name]
        places = [each.name for each in command.params if isinstance(each, click.Argument)]
        assert places == [each.name for each in verb.arguments if not each.flag]
        assert CliRunner().invoke(group, [verb.name, "--help"]).exit_code == 0
