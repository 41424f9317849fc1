"""The commands about work are known before anything of work is loaded."""

import subprocess
import sys


def test_the_menu_of_commands_loads_nothing_of_work():
    code = (
        "import sys\nfrom hermes_agent.cli.chat.chat_session import names; names()\n"
        "print([name for name in sys.modules if '.work.' in name and not name.endswith('.settings')"
        " and name.count('.') > 2])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert found.strip() == "[]"
