"""What a runtime says of its parts."""

from dataclasses import replace

from hermes_agent.app.opening import Options, open_system
from hermes_agent.host.paths import Home
from hermes_agent.tools.schema import from_function


async def test_a_tool_that_a_dialect_cannot_take_is_named_with_the_reason(tmp_path):
    async def fine(path: str) -> str:
        return path

    whole = from_function("fine", fine)
    broken = replace(whole, signature=replace(whole.signature, name="broken", parameters={"type": "string"}))
    options = Options(model="demo/scripted", extra_tools=(whole, broken))
    async with open_system(Home(root=tmp_path, base=tmp_path), options) as runtime:
        (aside,) = runtime.not_offered()
        with_none = runtime.not_offered("nobody/knows")

    assert (aside.name, "instead of an object" in aside.reason) == ("broken", True)
    assert with_none == ()
