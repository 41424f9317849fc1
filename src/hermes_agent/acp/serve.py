"""Serves one editor: the methods of the protocol, on handles of this process, until the editor leaves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from acp import schema
from acp.connection import Connection
from acp.exceptions import RequestError
from acp.meta import PROTOCOL_VERSION
from pydantic import BaseModel, ValidationError

from hermes_agent.acp.editor import Editor
from hermes_agent.acp.speech import SPEECHES
from hermes_agent.acp.transport import PARAMS, StdioTransport, request_id
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import AuthRefused, HermesError, NoModel, OutOfCredit, StoreError, UnknownSession
from hermes_agent.host.late import late
from hermes_agent.host.loops import ends_within, told_to_end
from hermes_agent.host.paths import Home
from hermes_agent.host.tasks import spawn
from hermes_agent.version import VERSION

if TYPE_CHECKING:
    from hermes_agent.acp.sessions import Sessions

OPEN, OPTIONS = "hermes_agent.app.opening:open_system", "hermes_agent.app.process:Options"
SESSIONS = "hermes_agent.acp.sessions:Sessions"
LEAVE_SECONDS, LOOK_SECONDS = 2.0, 2.0
UNKNOWN_METHOD, AUTH_REQUIRED, FAILED, WITHDRAWN = -32601, -32000, -32603, -32800
NO_KEY = frozenset({NoModel.__name__, AuthRefused.__name__, OutOfCredit.__name__})
SETUP, KEY, KEYS = "hermes-setup", "env", ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY")

METHODS: Mapping[str, tuple[type[BaseModel], str]] = {
    "initialize": (schema.InitializeRequest, "initialize"),
    "authenticate": (schema.AuthenticateRequest, "authenticate"),
    "logout": (schema.LogoutRequest, "logout"),
    "session/new": (schema.NewSessionRequest, "new"),
    "session/load": (schema.LoadSessionRequest, "load"),
    "session/resume": (schema.ResumeSessionRequest, "resume"),
    "session/list": (schema.ListSessionsRequest, "list"),
    "session/delete": (schema.DeleteSessionRequest, "delete"),
    "session/close": (schema.CloseSessionRequest, "close"),
    "session/fork": (schema.ForkSessionRequest, "fork"),
    "session/prompt": (schema.PromptRequest, "prompt"),
    "session/set_mode": (schema.SetSessionModeRequest, "set_mode"),
    "session/set_config_option": (schema.SetSessionConfigOptionSelectRequest, "set_option"),
}
NOTIFICATIONS: Mapping[str, tuple[type[BaseModel], str]] = {
    "session/cancel": (schema.CancelNotification, "cancel"),
    "$/cancel_request": (schema.CancelRequestNotification, "cancel_request"),
}
OWN = frozenset({"initialize", "authenticate", "logout", "cancel_request"})
"""Those that need no session."""


async def serve(home: Home, handles: tuple[int, int], model: str = "") -> None:
    """Serve one editor until it closes its side, dies, or the process is asked to end. The process ends soon after,
    whatever its threads do."""
    with told_to_end(LEAVE_SECONDS) as told:
        async with connected(home, handles, model) as (agent, left):
            ends = [*left, spawn(told.wait(), name="asked to end"), spawn(orphaned(os.getppid()), name="parent")]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for each in ends:
                each.cancel()
            if agent.opened is None or agent.opened.system.settings.acp.on_leave == "stop":
                ends_within(LEAVE_SECONDS)


async def orphaned(parent: int) -> None:
    """Return when the process that started this one is gone."""
    while os.getppid() == parent:
        await SystemClock().sleep(LOOK_SECONDS)


@asynccontextmanager
async def connected(
    home: Home, handles: tuple[int, int], model: str = ""
) -> AsyncIterator[tuple[AcpAgent, tuple[asyncio.Task[Any], ...]]]:
    """Context manager: the agent behind these handles, and tasks one of which ends when the editor leaves. On exit
    its runs are stopped, or have ended."""
    async with AsyncExitStack() as closing:

        async def opens() -> Sessions:
            options = late(OPTIONS)(model=model, titles=True, reviews=True)
            system = await closing.enter_async_context(late(OPEN)(home.ensure(), options))
            sessions: Sessions = late(SESSIONS)(system, agent.editor)
            return sessions

        transport = StdioTransport(*handles)
        agent = AcpAgent(opens)
        connection = Connection(agent.handle, transport, listening=False)
        agent.editor = Editor(connection, transport)
        tasks = (
            spawn(connection.main_loop(), name="messages of the editor"),
            spawn(transport.gone.wait(), name="the editor reads no more"),
        )
        try:
            yield agent, tasks
        finally:
            for each in tasks:
                each.cancel()
            if agent.opened is not None:
                await agent.opened.leave()
            with suppress(ConnectionError):
                await connection.close()


class AcpAgent:
    """Answers the requests of one editor. `opens` gives the sessions, with the system opened: for the first request
    that needs it, so that `initialize` waits for no import."""

    def __init__(self, opens: Callable[[], Coroutine[Any, Any, Sessions]]) -> None:
        self.editor: Editor
        self.opened: Sessions | None = None
        self._opens, self._once = opens, asyncio.Lock()
        self._requests: dict[Any, asyncio.Task[Any] | None] = {}

    async def handle(self, method: str, params: Any, is_notification: bool) -> Any:  # noqa: ANN401 - the SDK's shape
        """Answer one message. Raises `RequestError` with a sentence."""
        if (found := (NOTIFICATIONS if is_notification else METHODS).get(method)) is None:
            if is_notification:
                return None
            raise RequestError(UNKNOWN_METHOD, f"There is no method `{method[:80]}` here.", {"method": method[:200]})
        number = object() if is_notification else request_id.get()
        self._requests[number] = asyncio.current_task()
        try:
            request = found[0].model_validate({} if params is None else params)
            target = self if found[1] in OWN else await self.sessions()
            return await getattr(target, found[1])(request)
        except ValidationError as error:
            if is_notification:
                return None
            raise RequestError(PARAMS, _sentence(method, error)) from error
        except HermesError as error:
            raise _refusal(error) from error
        except asyncio.CancelledError:
            if number in self._requests:
                raise
            raise RequestError(WITHDRAWN, "The request was withdrawn.") from None
        finally:
            self._requests.pop(number, None)

    async def sessions(self) -> Sessions:
        """The sessions, with the system opened. Raises `HermesError`."""
        async with self._once:
            if self.opened is None:
                self.opened = await self._opens()
        return self.opened

    async def initialize(self, request: schema.InitializeRequest) -> schema.InitializeResponse:
        """Agree on the version, and say what this agent can do."""
        self.editor.know(request)
        self.editor.version = request.protocol_version if request.protocol_version in SPEECHES else PROTOCOL_VERSION
        return schema.InitializeResponse(
            protocol_version=self.editor.version,
            agent_info=schema.Implementation(name="hermes", title="Hermes", version=VERSION),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(image=True, audio=False, embedded_context=True),
                mcp_capabilities=schema.McpCapabilities(http=True, sse=True),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities(),
                    resume=schema.SessionResumeCapabilities(),
                    close=schema.SessionCloseCapabilities(),
                    delete=schema.SessionDeleteCapabilities(),
                    fork=schema.SessionForkCapabilities(),
                    additional_directories=schema.SessionAdditionalDirectoriesCapabilities(),
                ),
                auth=schema.AgentAuthCapabilities(logout=schema.LogoutCapabilities()),
            ),
            auth_methods=self._ways_in(),
        )

    def _ways_in(self) -> list[schema.EnvVarAuthMethod | schema.TerminalAuthMethod | schema.AuthMethodAgent]:
        about = "Uses the model that `hermes setup` chose, with its key."
        told = "Chooses a model, and asks for its key."
        names = [schema.AuthEnvVar(name=name, optional=True) for name in KEYS]
        terminal = schema.TerminalAuthMethod(
            type="terminal", id=SETUP, name="hermes setup", description=told, args=["setup"]
        )
        return [
            schema.AuthMethodAgent(id="agent", name="Configured model", description=about),
            *([terminal] if self.editor.has_terminal else []),
            schema.EnvVarAuthMethod(type="env_var", id=KEY, name="API key", vars=names),
        ]

    async def authenticate(self, request: schema.AuthenticateRequest) -> schema.AuthenticateResponse:
        """Look whether a model can be asked now."""
        known = [each.id for each in self._ways_in()]
        if request.method_id not in known:
            raise RequestError(PARAMS, f"There is no way in `{request.method_id[:80]}`: {', '.join(known)}.")
        (await self.sessions()).system.route()
        return schema.AuthenticateResponse()

    async def logout(self, _: schema.LogoutRequest) -> schema.LogoutResponse:
        """The keys are the home's, and stay there for the other surfaces."""
        return schema.LogoutResponse()

    async def cancel_request(self, request: schema.CancelRequestNotification) -> None:
        """Withdraw a request: what works on it ends, as a cancelled prompt does."""
        if task := self._requests.pop(request.request_id, None):
            task.cancel()


def _sentence(method: str, error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(each) for each in first["loc"])
    return f"{method}: `{where}` is not right ({first['msg']})." if where else f"{method}: {first['msg']}."


def _refusal(error: HermesError) -> RequestError:
    """An error as the protocol has it, with its sentence."""
    kind = getattr(error, "error", "") or type(error).__name__
    if kind in NO_KEY:
        return RequestError(AUTH_REQUIRED, str(error), {"authMethods": [SETUP, KEY]})
    is_unknown = isinstance(error, UnknownSession)
    is_ours = hasattr(error, "error") or (isinstance(error, StoreError) and not is_unknown)
    return RequestError(FAILED if is_ours else PARAMS, str(error), None if is_unknown else {"error": kind})
