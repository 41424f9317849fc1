"""MarkdownV2 as Telegram reads it, and how it refuses a call."""

from __future__ import annotations

RESERVED = "_*[]()~`>#+-=|{}.!"


class Refused(Exception):
    """What the Bot API answers to a call that it does not do."""

    def __init__(self, code: int, words: str, **parameters: int) -> None:
        super().__init__(words)
        self.code = code
        self.words = words
        self.parameters = parameters


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
