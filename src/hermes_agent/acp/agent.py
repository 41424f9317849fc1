"""The methods of the protocol: what an editor asks of the agent, by sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from acp import schema
from acp.exceptions import RequestError
from acp.meta import PROTOCOL_VERSION
from pydantic import BaseModel, ValidationError

from hermes_agent.acp.editor import Editor
from hermes_agent.acp.speech import SPEECHES
from hermes_agent.acp.transport import PARAMS, request_id
from hermes_agent.core.errors import AuthRefused, HermesError, NoModel, OutOfCredit, StoreError, UnknownSession
from hermes_agent.host.tasks import spawn
from hermes_agent.version import VERSION

if TYPE_CHECKING:
    from hermes_agent.acp.sessions import Sessions

UNKNOWN_METHOD, AUTH_REQUIRED, FAILED, WITHDRAWN = -32601, -32000, -32603, -32800
NO_KEY = frozenset({NoModel.__name__, AuthRefused.__name__, OutOfCredit.__name__})
SETUP, KEY = "hermes-setup", "env"

METHODS: dict[str, tuple[type[BaseModel], str]] = {
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
NOTIFICATIONS: dict[str, tuple[type[BaseModel], str]] = {
    "session/cancel": (schema.CancelNotification, "cancel"),
    "$/cancel_request": (schema.CancelRequestNotification, "cancel_request"),
}
OWN = frozenset({"initialize", "authenticate", "logout", "cancel_request"})
"""Those that need no session."""


class AcpAgent:
    """Answers the requests of one editor. `opens` gives the sessions, with the system opened: after the first answer,
    so that it waits for no import."""

    def __init__(self, opens: Callable[[], Coroutine[Any, Any, Sessions]]) -> None:
        self.editor: Editor
        self._opens = opens
        self.opening: asyncio.Task[Sessions] | None = None
        self._requests: dict[Any, tuple[asyncio.Task[Any] | None, str]] = {}
        self._withdrawn: set[Any] = set()

    async def handle(self, method: str, params: Any, is_notification: bool) -> Any:  # noqa: ANN401 - the SDK's shape
        """Answer one message. Raises `RequestError` with a sentence."""
        found = (NOTIFICATIONS if is_notification else METHODS).get(method)
        if found is None:
            if is_notification:
                return None
            raise RequestError(UNKNOWN_METHOD, f"There is no method `{method[:80]}` here.", {"method": method[:200]})
        model, name = found
        try:
            request = model.model_validate({} if params is None else params)
        except ValidationError as error:
            if is_notification:
                return None
            raise RequestError(PARAMS, _sentence(method, error)) from error
        number = request_id.get()
        if not is_notification:
            self._requests[number] = asyncio.current_task(), str(getattr(request, "session_id", ""))
        try:
            target = self if name in OWN else await self.sessions()
            return await getattr(target, name)(request)
        except HermesError as error:
            raise _refusal(error) from error
        except asyncio.CancelledError:
            if number in self._withdrawn:
                raise RequestError(WITHDRAWN, "The request was withdrawn.") from None
            raise
        finally:
            self._withdrawn.discard(number)
            if not is_notification:
                self._requests.pop(number, None)

    async def sessions(self) -> Sessions:
        """The sessions, with the system opened. Raises `HermesError`."""
        if self.opening is None or self._has_failed:
            self.opening = spawn(self._opens(), name="open the system")
        return await asyncio.shield(self.opening)

    @property
    def opened(self) -> Sessions | None:
        """The sessions, once the system is open."""
        task = self.opening
        return task.result() if task is not None and task.done() and not self._has_failed else None

    @property
    def _has_failed(self) -> bool:
        task = self.opening
        return task is not None and task.done() and (task.cancelled() or task.exception() is not None)

    async def initialize(self, request: schema.InitializeRequest) -> schema.InitializeResponse:
        """Agree on the version, and say what this agent can do."""
        self.editor.capabilities = request.client_capabilities or schema.ClientCapabilities()
        self.editor.version = request.protocol_version if request.protocol_version in SPEECHES else PROTOCOL_VERSION
        number = request_id.get()
        self.editor.transport.after[number] = lambda: spawn(_quietly(self.sessions()), name="open the system")
        can = schema.SessionCapabilities(
            list=schema.SessionListCapabilities(),
            resume=schema.SessionResumeCapabilities(),
            close=schema.SessionCloseCapabilities(),
            delete=schema.SessionDeleteCapabilities(),
            fork=schema.SessionForkCapabilities(),
        )
        return schema.InitializeResponse(
            protocol_version=self.editor.version,
            agent_info=schema.Implementation(name="hermes", title="Hermes", version=VERSION),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(image=True, audio=False, embedded_context=True),
                mcp_capabilities=schema.McpCapabilities(http=True, sse=True),
                session_capabilities=can,
                auth=schema.AgentAuthCapabilities(logout=schema.LogoutCapabilities()),
            ),
            auth_methods=self._ways_in(),
        )

    def _ways_in(self) -> list[schema.EnvVarAuthMethod | schema.TerminalAuthMethod | schema.AuthMethodAgent]:
        about = "Uses the model that `hermes setup` chose, with its key."
        found: list[Any] = [schema.AuthMethodAgent(id="agent", name="Configured model", description=about)]
        auth = self.editor.capabilities.auth
        if auth and auth.terminal:
            told = "Chooses a model, and asks for its key."
            found.append(
                schema.TerminalAuthMethod(
                    type="terminal", id=SETUP, name="hermes setup", description=told, args=["setup"]
                )
            )
        names = [schema.AuthEnvVar(name="ANTHROPIC_API_KEY", optional=True)]
        names += [schema.AuthEnvVar(name=name, optional=True) for name in ("OPENAI_API_KEY", "OPENROUTER_API_KEY")]
        return [*found, schema.EnvVarAuthMethod(type="env_var", id=KEY, name="API key", vars=names)]

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
        """Withdraw a request: a prompt is cancelled, anything else ends."""
        task, session = self._requests.get(request.request_id, (None, ""))
        if task is None:
            return
        if not (self.opened and self.opened.cancel_prompt(session, task)):
            self._withdrawn.add(request.request_id)
            task.cancel()


async def _quietly(work: Awaitable[Any]) -> None:
    with suppress(HermesError):  # The first request that needs it says why.
        await work


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
