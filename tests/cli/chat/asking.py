"""The chat with two tools that ask: a child process of the tests."""

import asyncio
import os
import sys

from hermes_agent.app.opening import Options, open_system
from hermes_agent.cli.chat.begin import can_redraw, run_plain
from hermes_agent.cli.chat.full import run_full
from hermes_agent.cli.options import parse
from hermes_agent.core.effects import Effect
from hermes_agent.core.tool import CallContext, Question, tool
from hermes_agent.host.paths import find_home
from hermes_agent.tools.schema import collect


class Asking:
    """Tools that do nothing but ask."""

    @tool(effect=Effect.ASKS)
    async def approve(self, command: str, context: CallContext) -> str:
        """Ask for a decision."""
        choices = ("once", "session", "always", "deny")
        text = f"May I run this?\n{command}"
        return "Decided: " + await context.ask(Question(text=text, choices=choices, purpose="approval"))

    @tool(effect=Effect.ASKS)
    async def colour(self, context: CallContext) -> str:
        """Ask for a fact."""
        return "Colour: " + await context.ask(Question(text="Which colour?", choices=("red", "blue")))


async def main() -> None:
    tools, _ = collect([Asking()])
    invocation = parse(sys.argv[1:])
    assert invocation is not None
    async with open_system(find_home().ensure(), Options(extra_tools=tools)) as runtime:
        await (run_full if can_redraw(os.environ) else run_plain)(runtime, invocation)


if __name__ == "__main__":
    asyncio.run(main())
