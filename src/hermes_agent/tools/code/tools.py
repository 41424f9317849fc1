"""execute_code: Python in the place that calls tools; only what it prints comes back."""

from __future__ import annotations

import asyncio
import secrets

from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.tool import Answer, CallContext, tool
from hermes_agent.host.late import Needs
from hermes_agent.host.tasks import spawn
from hermes_agent.sandbox.place import Command, Place, Running
from hermes_agent.tools.code.program import command, program
from hermes_agent.tools.code.session import Conversation, TooManyCalls, TooMuchOutput
from hermes_agent.tools.deletions import decided
from hermes_agent.tools.excerpt import Caps, caps_of, cleaned
from hermes_agent.tools.names import exec_name
from hermes_agent.tools.output import Hiding, hide_kept, hiding_of
from hermes_agent.tools.schema import said
from hermes_agent.tools.settings import CodeSettings
from hermes_agent.tools.starting import started, told_meanwhile

SPARE_SECONDS = 5  # so much later than it is ended here the place ends it, where nobody is here any more


class CodeTools:
    """Python programs in `place`. `hiding` takes secrets out of what is kept of their output."""

    def __init__(
        self, *, place: Place, settings: CodeSettings, caps: Caps | None = None, hiding: Hiding | None = None
    ) -> None:
        self._place = place
        self._settings = settings
        self._caps = caps or Caps()
        self._hiding = hiding or Hiding()

    @tool(effect=Effect.WRITES, needs=(Capability.EXEC,))
    async def execute_code(self, code: str, context: CallContext, timeout: int = 0) -> Answer:  # noqa: ASYNC109 - the model's word for it
        """Run Python that calls tools, for loops and for filtering large results: only what it prints comes back.

        `tools.read_file(path=...)` and the like return text; one that fails raises `tools.ToolFailed`.

        Args:
            timeout: seconds, default 300
        """
        seconds = self._seconds(timeout, context)
        mark = f"tool-{secrets.token_hex(12)} "
        text = command(program(code, mark), mark.strip())
        wanted = Command(text=text, folder=context.workspace, background=True, limit=seconds + SPARE_SECONDS)
        exec_id = f"{exec_name(context.session)}/{exec_name(context.key)}"
        with told_meanwhile(self._place, context):
            running = await started(self._place.start(exec_id, wanted), self._stop, name=exec_id)
        talk = Conversation(
            running=running,
            mark=mark.encode(),
            call=context.use,
            most_calls=self._settings.max_calls,
            most_bytes=min(self._settings.max_output, self._caps.max_bytes),
        )
        note = await self._carried_on(talk, running, seconds)
        await hide_kept(running, self._place, self._hiding)
        return await self._answer(talk, running, note, context)

    async def _carried_on(self, talk: Conversation, running: Running, seconds: float) -> str:
        """Let the program run to its end; why it was ended before, or nothing."""
        try:
            async with asyncio.timeout(seconds):
                await talk.go_on()
        except TimeoutError:
            note = f"The code took more than {seconds:.0f} s and was ended."
        except (TooManyCalls, TooMuchOutput) as limit:
            note = str(limit)
        except BaseException:
            await asyncio.shield(spawn(self._stop(running), name=f"stop {running.exec_id}"))
            raise
        else:
            return ""
        await running.kill()
        return note

    async def _stop(self, running: Running) -> None:
        await running.kill()
        await hide_kept(running, self._place, self._hiding)

    async def _answer(self, talk: Conversation, running: Running, note: str, context: CallContext) -> Answer:
        printed = cleaned(bytes(talk.printed[: self._caps.max_bytes]).decode("utf-8", "replace")).strip("\n")
        ended = await running.poll()
        code = ended.code if ended is not None else None
        last = f"[{note}]" if note else f"[exit {code}]" if code else ""
        notes = [f"[{each}]" for each in (await decided(ended, context)).notes] if ended is not None else []
        return said("\n".join(filter(None, (printed, last, *notes))) or "[nothing was printed]", is_error=bool(last))

    def _seconds(self, asked: int, context: CallContext) -> float:
        wanted = min(asked if asked > 0 else self._settings.timeout, self._settings.timeout)
        left = context.seconds_left()
        return wanted if left is None else max(0.1, min(wanted, left))


def code_tools(needs: Needs) -> CodeTools:
    """The toolset `code`."""
    place, settings = needs.get(Place), needs.get(CodeSettings)
    return CodeTools(place=place, settings=settings, caps=caps_of(needs), hiding=hiding_of(needs))
