"""A double of Telegram's Bot API on loopback, written from core.telegram.org/bots/api."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from email import policy
from email.parser import BytesParser
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from hermes_agent.core.clock import SystemClock
from hermes_agent.host.http import Http
from hermes_agent.host.inbound.listener import Listening as Server, serve
from hermes_agent.host.inbound.message import Cut, Request, Response
from hermes_agent.testing.platform import TITLE, Chats, Held, Shown, Trouble
from tests.doubles.serving import dripping
from tests.doubles.telegram_words import FILES, Refused, drafted, labels, taken, understood

TOKEN = "123456:" + "test-token"
ME = {"id": 42, "is_bot": True, "first_name": "Hermes", "username": "hermes_bot"}
CALLS = {
    "sendMessage": "send",
    **dict.fromkeys(FILES, "send"),
    "editMessageText": "edit",
    "deleteMessage": "delete",
    "sendMessageDraft": "draft",
    "sendChatAction": "typing",
    "setMessageReaction": "react",
    "getUpdates": "listen",
}
Arguments = dict[str, Any]  # what a call was given


class TelegramDouble(Held):
    """A Bot API with one bot. Keeps updates until an offset confirms them, those said while `holding` in `late`."""

    def __init__(self) -> None:
        super().__init__()
        self.chats = Chats()
        self.answered: list[tuple[str, str]] = []
        self.files: dict[str, bytes] = {}
        self.slow = 0.0  # seconds of a file
        self.sent_files: list[tuple[str, str, bytes]] = []  # method, name, bytes
        self.webhook: Arguments = {}
        self.moved: dict[str, int] = {}
        self.drafts, self.undrafted = True, False
        """This server knows `sendMessageDraft` (Bot API 9.3); this bot may show none (before 9.5: without topics)."""
        self.server: Server | None = None
        self.given_out = 0
        """How many updates were given out at all, confirmed or not."""
        self.forgotten: set[str] = set()
        """Messages that were deleted: nothing in a topic can answer them, whatever it allows."""
        self._updates: list[Arguments] = []
        self._confirmed = 0
        self._next_update = 1
        self._next_message = 0
        self._came = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def url(self) -> str:
        """The address for `api_url`."""
        assert self.server is not None
        return self.server.url

    # What people do

    async def say(
        self,
        text: str,
        *,
        chat: str = "1",
        user: str = "7",
        name: str = "Ann",
        group: bool = False,
        thread: str = "",
        **more: Any,  # noqa: ANN401  other fields of a message, as the Bot API has them
    ) -> str:
        self._next_message += 1
        kind = {"type": "supergroup", "title": TITLE} if group else {"type": "private", "first_name": name}
        message = {
            "message_id": self._next_message,
            "from": {"id": int(user), "is_bot": False, "first_name": name},
            "chat": {"id": int(chat), **kind},
            "date": int(SystemClock().now()),
            **({"text": text} if text else {}),
            **({"message_thread_id": int(thread), "is_topic_message": True} if thread else {}),
            **more,
        }
        await self.tells(partial(self.tell, message=message))
        return f"{chat}:{self._next_message}"

    async def again(self, back: int = 0) -> None:
        self.tell(**{key: value for key, value in self._updates[-1 - back].items() if key != "update_id"})

    async def change(self, text: str) -> None:
        message = self._updates[-1].get("message") or self._updates[-1]["edited_message"]
        self.tell(edited_message={**message, "text": text, "edit_date": message.get("edit_date", message["date"]) + 1})

    async def press(self, message: str, choice: int, *, user: str = "7") -> None:
        shown = self.chats.messages[message]
        chat = {"id": int(shown.chat), "type": "private" if int(shown.chat) > 0 else "supergroup"}
        keys = [key for row in json.loads(shown.written)["reply_markup"]["inline_keyboard"] for key in row]
        self.tell(
            callback_query={
                "id": self.chats.next_id(),
                "from": {"id": int(user), "is_bot": False, "first_name": "Ann"},
                "chat_instance": "1",
                "message": {"message_id": int(message), "chat": chat, "date": 1_700_000_000, "from": ME},
                "data": keys[choice]["callback_data"],
            }
        )

    def tell(self, **update: Any) -> None:  # noqa: ANN401  an update, as the Bot API has it
        """Have an update for the bot."""
        self._updates.append({"update_id": self._next_update, **update})
        self._next_update += 1
        if self._loop is None:
            self._came.set()
        else:
            self._loop.call_soon_threadsafe(self._came.set)  # It may be served in another thread.

    def received(self) -> int:
        return self._confirmed

    async def bring(self, http: Http, leads_to: str, **headers: str) -> list[int]:
        """Bring updates to the webhook, which a proxy leads to that address, until one is not taken; the answers."""
        path, answers = urlsplit(self.webhook["url"]).path, []
        shown = {"X-Telegram-Bot-Api-Secret-Token": self.webhook["secret_token"], **headers}
        for update in self._new(0):
            answer = await http.client(leads_to).post(f"{leads_to}{path}", json=update, headers=shown)
            answers.append(answer.status_code)
            if answer.status_code != 200:
                break
            self._confirmed = update["update_id"]
        return answers

    def upgrade(self, chat: str, to: str) -> None:
        """Make a group a supergroup, which has another id."""
        self.moved[chat] = int(to)
        told: Arguments = {"from": {"id": 7, "is_bot": False, "first_name": "Ann"}, "date": int(SystemClock().now())}
        old, new = {"id": int(chat), "type": "group"}, {"id": int(to), "type": "supergroup"}
        self.tell(message={**told, "message_id": 1, "chat": old, "migrate_to_chat_id": int(to)})
        self.tell(message={**told, "message_id": 1, "chat": new, "migrate_from_chat_id": int(chat)})

    # What the bot does

    async def handle(self, request: Request) -> Response:
        """Answer one call."""
        self._loop = asyncio.get_running_loop()
        if request.path.startswith("/file/"):
            return self._file(request.path)
        _, bot, method = [*request.path.split("/"), "", ""][:3]
        if bot != f"bot{TOKEN}":
            return _answer(401, {"ok": False, "error_code": 401, "description": "Unauthorized"})
        trouble = self.chats.trouble(CALLS.get(method, method))
        try:
            _strike(trouble, method, self.chats.retry_after)
            result = await self._call(method, _arguments(request))
        except Refused as refused:
            body = {"ok": False, "error_code": refused.code, "description": refused.words}
            return _answer(refused.code, body | ({"parameters": refused.parameters} if refused.parameters else {}))
        if trouble is Trouble.DEAF:
            raise Cut(reset=True)
        if trouble is Trouble.GARBLED:
            return Response(status=200, body=b"<html>")
        return _answer(200, {"ok": True, "result": result})

    async def _call(self, method: str, given: Arguments) -> object:
        if moved := self.moved.get(str(given.get("chat_id"))):
            raise Refused(400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=moved)
        if method == "getUpdates":
            if self.webhook:
                raise Refused(409, "Conflict: can't use getUpdates method while webhook is active")
            return await self._listened(given)
        does: dict[str, Callable[[Arguments], object]] = {
            "getMe": lambda _: ME,
            "sendMessage": lambda given: self._sent(given, given.get("text", "")),
            **{method: partial(self._filed, method) for method in FILES},
            "editMessageText": self._edited,
            "deleteMessage": self._deleted,
            "answerCallbackQuery": self._acknowledged,
            "sendMessageDraft": self._drafted,
            "sendChatAction": self._typed,
            "setMessageReaction": self._reacted,
            "getFile": lambda given: {**given, "file_unique_id": "u", **_path(given["file_id"])},
            "setWebhook": self._hooked,
            "deleteWebhook": self._unhooked,
        }
        if method not in does:
            raise Refused(404, "Not Found")
        return does[method](given)

    def _hooked(self, given: Arguments) -> bool:
        if not str(given["url"]).startswith("https://"):
            raise Refused(400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook")
        self.webhook = given
        return True

    def _unhooked(self, _: Arguments) -> bool:
        self.webhook = {}
        return True

    def _deleted(self, given: Arguments) -> bool:
        if self.chats.messages.pop(str(given["message_id"]), None) is None:
            raise Refused(400, "Bad Request: message to delete not found")
        return True

    def _acknowledged(self, given: Arguments) -> bool:
        self.answered.append((given["callback_query_id"], given.get("text", "")))
        return True

    def _drafted(self, given: Arguments) -> bool:
        if not self.drafts:
            raise Refused(404, "Not Found")
        if self.undrafted:
            raise Refused(400, "Bad Request: TEXTDRAFT_PEER_INVALID")
        self.chats.draft(str(given["chat_id"]), drafted(given))
        return True

    def _typed(self, given: Arguments) -> bool:
        self.chats.typing.append(str(given["chat_id"]))
        return True

    def _reacted(self, given: Arguments) -> bool:
        self.chats.reactions.append((str(given["message_id"]), str(given["reaction"])))
        return True

    async def _listened(self, given: Arguments) -> list[Arguments]:
        offset = int(given.get("offset") or 0)
        self._confirmed = max(self._confirmed, offset - 1)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(float(given.get("timeout") or 0)):
                while not self._new(offset):
                    self._came.clear()
                    await self._came.wait()
        found = self._new(offset)[:100]
        self.given_out = max([self.given_out, *(int(update["update_id"]) for update in found)])
        return found

    def _new(self, offset: int) -> list[Arguments]:
        return [update for update in self._updates if update["update_id"] >= max(offset, self._confirmed + 1)]

    def _sent(self, given: Arguments, text: str, file: str = "") -> Arguments:
        words = understood(given, text)
        if not words.strip() and not file:
            raise Refused(400, "Bad Request: message text is empty")
        reply = given.get("reply_parameters") or {}
        if str(reply.get("message_id")) in self.forgotten and given.get("message_thread_id"):
            raise Refused(400, "Bad Request: message to be replied not found")
        shown = self.chats.show(
            Shown(
                id=self.chats.next_id(),
                chat=str(given["chat_id"]),
                text=words,
                thread=str(given.get("message_thread_id", "")),
                buttons=labels(given),
                file=file,
                answers=f"{given['chat_id']}:{reply['message_id']}" if reply else "",
                written=json.dumps(given, default=str),
            )
        )
        return _message(shown)

    def _filed(self, method: str, given: Arguments) -> Arguments:
        field, name, content = taken(method, given)
        self.sent_files.append((method, name, content))
        return self._sent({**given, field: name}, given.get("caption", ""), name)

    def _edited(self, given: Arguments) -> Arguments:
        id_, words = str(given["message_id"]), understood(given, given.get("text", ""))
        shown = self.chats.messages.get(id_)
        if shown is None:
            raise Refused(400, "Bad Request: message to edit not found")
        if (shown.text, shown.buttons) == (words, labels(given)):
            raise Refused(400, "Bad Request: message is not modified: specified new message content is the same")
        self.chats.change(id_, words, labels(given), json.dumps(given, default=str))
        return _message(self.chats.messages[id_])

    def _file(self, path: str) -> Response:
        content = self.files.get(path.rsplit("/", 1)[-1])
        return Response(status=404) if content is None else Response(body=dripping(content, self.slow))


@contextlib.asynccontextmanager
async def telegram() -> AsyncIterator[TelegramDouble]:
    """A double that listens on loopback until the block ends."""
    double = TelegramDouble()
    async with serve(double.handle) as server:
        double.server = server
        yield double


def _strike(trouble: Trouble | None, method: str, retry_after: int) -> None:
    match trouble:
        case Trouble.BUSY:
            raise Refused(429, f"Too Many Requests: retry after {retry_after}", retry_after=retry_after)
        case Trouble.BROKEN:
            raise Refused(500, "Internal Server Error")
        case Trouble.CUT:
            raise Cut(reset=True)
        case Trouble.GONE if method in ("editMessageText", "deleteMessage"):
            raise Refused(400, "Bad Request: message to edit not found")
        case Trouble.GONE:
            raise Refused(400, "Bad Request: chat not found")
        case _:
            pass


def _message(shown: Shown) -> Arguments:
    kind = {"type": "private", "first_name": "Ann"} if not shown.chat.startswith("-") else {"type": "supergroup"}
    return {
        "message_id": int(shown.id),
        "date": 1_700_000_000,
        "chat": {"id": int(shown.chat), **kind},
        "from": ME,
        "text": shown.text,
    }


def _arguments(request: Request) -> Arguments:
    kind = request.headers.get("content-type", "")
    if kind.startswith("application/json"):
        given: Arguments = json.loads(request.body or b"{}")
        return given
    if kind.startswith("multipart/"):
        return _parts(kind, request.body)
    return {name: _plain(value) for name, value in parse_qsl(request.body.decode(), keep_blank_values=True)}


def _parts(kind: str, body: bytes) -> Arguments:
    head = f"Content-Type: {kind}\r\n\r\n".encode()
    given: Arguments = {}
    for part in BytesParser(policy=policy.HTTP).parsebytes(head + body).iter_parts():
        name = str(part.get_param("name", header="content-disposition"))
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        given[name] = (part.get_filename(), content) if part.get_filename() else _plain(content.decode())
    return given


def _plain(value: str) -> object:
    """What a form's field stands for: JSON where it is an object, a list or a truth."""
    if value[:1] in ("{", "[") or value in ("true", "false"):
        with contextlib.suppress(ValueError):
            return json.loads(value)
    return value


def _answer(status: int, body: Mapping[str, object]) -> Response:
    return Response(status=status, headers={"content-type": "application/json"}, body=json.dumps(body).encode())


def _path(file: str) -> dict[str, str]:
    """Where a file is; of some nobody says."""
    return {} if file == "pathless" else {"file_path": f"f/{file}"}
