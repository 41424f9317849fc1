"""Words, buttons and files as Telegram takes them, and how it refuses a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LONGEST, LONGEST_CAPTION, LONGEST_DATA = 4096, 1024, 64
MB = 1_000_000
ANY = ((0, b""),)
MP4 = ((4, b"ftyp"),)
FILES = {
    "sendDocument": ("document", ANY, 50 * MB, ""),
    "sendPhoto": ("photo", ((0, b"\x89PNG"), (0, b"\xff\xd8\xff")), 10 * MB, "IMAGE_PROCESS_FAILED"),
    "sendAnimation": ("animation", ((0, b"GIF8"), *MP4), 50 * MB, "ANIMATION_CONTENT_INVALID"),
    "sendVideo": ("video", MP4, 50 * MB, "VIDEO_CONTENT_TYPE_INVALID"),
    "sendAudio": ("audio", ((0, b"ID3"), (0, b"\xff\xfb"), *MP4), 50 * MB, "AUDIO_CONTENT_INVALID"),
    "sendVoice": ("voice", ((0, b"OggS"), (0, b"ID3")), 50 * MB, "VOICE_CONTENT_INVALID"),
}
"""Methods that send a file: the argument, how the file begins and how large it may be, and what else is answered."""
RESERVED = "_*[]()~`>#+-=|{}.!"


class Refused(Exception):
    """What the Bot API answers to a call that it does not do."""

    def __init__(self, code: int, words: str, **parameters: int) -> None:
        super().__init__(words)
        self.code = code
        self.words = words
        self.parameters = parameters


def taken(method: str, given: Mapping[str, Any]) -> tuple[str, str, bytes]:
    """The argument that holds a file, its name and its bytes; refuses what the Bot API does not take as such a file."""
    field, begins, largest, refusal = FILES[method]
    name, content = given[field]
    if len(content) > largest:
        raise Refused(413, "Request Entity Too Large")
    if not any(content[at : at + len(sign)] == sign for at, sign in begins):
        raise Refused(400, f"Bad Request: {refusal}")
    if len(given.get("caption", "").encode("utf-16-le", "surrogatepass")) // 2 > LONGEST_CAPTION:
        raise Refused(400, "Bad Request: message caption is too long")
    return field, name, content


def labels(given: Mapping[str, Any]) -> tuple[str, ...]:
    """What stands on the buttons of a message. Refuses what the Bot API refuses."""
    rows = (given.get("reply_markup") or {}).get("inline_keyboard", [])
    keys = [key for row in rows for key in row]
    if any(len(key["callback_data"].encode()) > LONGEST_DATA for key in keys):
        raise Refused(400, "Bad Request: BUTTON_DATA_INVALID")
    return tuple(key["text"] for key in keys)


def understood(given: Mapping[str, Any], text: str) -> str:
    """The words that people see. Refuses what the Bot API refuses."""
    words = unformatted(text) if given.get("parse_mode") == "MarkdownV2" else text
    if len(words.encode("utf-16-le", "surrogatepass")) // 2 > LONGEST:
        raise Refused(400, "Bad Request: message is too long")
    return words


def drafted(given: Mapping[str, Any]) -> str:
    """The words of a draft that people see. An empty one is refused here, as by servers before Bot API 9.5."""
    if str(given["chat_id"]).startswith("-"):
        raise Refused(400, "Bad Request: TEXTDRAFT_PEER_INVALID")
    if not int(given.get("draft_id") or 0):
        raise Refused(400, "Bad Request: RANDOM_ID_INVALID")
    words = understood(given, given.get("text", ""))
    if not words.strip():
        raise Refused(400, "Bad Request: text must be non-empty")
    return words


def unformatted(text: str) -> str:
    """MarkdownV2 without its formatting; a reserved sign that is neither escaped nor paired is refused."""
    done: list[str] = []
    opened: list[str] = []
    at = 0
    while at < len(text):
        sign = text[at]
        if sign == "\\" and at + 1 < len(text):
            done.append(text[at + 1])
            at += 2
        elif text.startswith("```", at) or sign == "`":
            words, at = _code(text, at)
            done.append(words)
        elif sign == "[":
            opened.append("[")
            at += 1
        elif sign == "]" and "[" in opened and text.startswith("](", at):
            opened.remove("[")
            at = _closing(text, at + 2) + 1
        elif sign in "*_~":
            opened.remove(sign) if sign in opened else opened.append(sign)
            at += 1
        elif sign == ">" and (at == 0 or text[at - 1] == "\n"):
            at += 1
        elif sign in RESERVED:
            raise Refused(400, f"Bad Request: can't parse entities: character '{sign}' is reserved")
        else:
            done.append(sign)
            at += 1
    if opened:
        raise Refused(400, f"Bad Request: can't parse entities: can't find end of the entity {opened[-1]}")
    return "".join(done)


def _code(text: str, at: int) -> tuple[str, int]:
    mark = "```" if text.startswith("```", at) else "`"
    end = at + len(mark)
    inside: list[str] = []
    while not text.startswith(mark, end):
        if end >= len(text):
            raise Refused(400, "Bad Request: can't parse entities: can't find end of code entity")
        if text[end] == "\\":
            end += 1
        inside.append(text[end])
        end += 1
    words = "".join(inside)
    return (words.partition("\n")[2].removesuffix("\n") if mark == "```" else words), end + len(mark)


def _closing(text: str, at: int) -> int:
    while at < len(text) and text[at] != ")":
        at += 2 if text[at] == "\\" else 1
    if at >= len(text):
        raise Refused(400, "Bad Request: can't parse entities: can't find end of a URL")
    return at
