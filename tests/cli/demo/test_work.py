"""The demo of work shows what a command of the program says, and reads what a job wrote; test_demo.py runs it whole."""

import os
from pathlib import Path

from hermes_agent.app.demo import Stage
from hermes_agent.cli.demo.show import run_command
from hermes_agent.cli.demo.work import results
from hermes_agent.host.paths import Home


async def test_the_output_of_a_command_is_shown_and_returned(tmp_path: Path, capsys):
    home = Home(root=tmp_path / "home", base=tmp_path / "home").ensure()
    stage = Stage(home=home, project=tmp_path, url="")

    said = await run_command(stage, os.environ, "status")
    hidden = await run_command(stage, os.environ, "status", quiet=True)

    assert said == hidden
    assert capsys.readouterr().out.count("Nothing runs or waits.") == 1


def test_results_of_jobs_are_read_in_their_order(tmp_path: Path):
    folder = tmp_path / "cron" / "output" / "job"
    folder.mkdir(parents=True)
    for name in ("b", "a"):
        (folder / f"{name}.md").write_text(name)

    assert results(Stage(home=Home(root=tmp_path, base=tmp_path), project=tmp_path, url="")) == "a\nb"
