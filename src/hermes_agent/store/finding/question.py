"""Query parser of the search: words, "quoted phrases", exclusions by NOT or a minus, and dates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta

from hermes_agent.core.dataclass import dataclass
from hermes_agent.store.finding.terms import Phrase, stands_alone, stemmed, surface

LONGEST = 20_000
PIECE = re.compile(r'(?P<minus>(?<!\S)-(?=[^\W\d]|"))?(?:"(?P<quoted>[^"]*)"|(?P<plain>[^\s"]+))')
QUOTES = str.maketrans(dict.fromkeys("“”„«»「」『』", '"'))
OPERATORS = frozenset({"AND", "OR", "NOT"})
# English words that say nothing about what is looked for; in other languages, how common a word is decides.
STOP = frozenset(
    re.findall(
        r"\w+",
        """
        a about am an and are as at be been being but by can could d did do does doing done don for from had has have
        having he her here hers him his how i if in into is it its just ll m may me might mine must my no nor not of on
        or our re s shall she should so t than that the their them then there these they this those to too us ve very
        was we were what when where which who whom whose why will with would you your yours
        """,
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A parsed query. `words` are optional, the more the better; `required` are the quoted phrases; `excluded` must
    not occur; `spans` are the named days. Characters of scripts without spaces come in pairs."""

    words: tuple[Phrase, ...]
    required: tuple[Phrase, ...]
    excluded: tuple[Phrase, ...]
    spans: tuple[Span, ...]

    @property
    def apart(self) -> tuple[Phrase, ...]:
        """The single words of the quoted phrases, for when no text contains them as phrases."""
        return tuple(dict.fromkeys((term,) for phrase in self.required for term in phrase))

    @property
    def is_empty(self) -> bool:
        """Whether it contains nothing to search for."""
        return not (self.words or self.required or self.spans)


def understood(text: str, now: float) -> Question:
    """Parses any text as a query: no punctuation is a syntax error. Only the first 20,000 characters count; `now` is
    the base for "yesterday"."""
    spans, rest = dated(text[:LONGEST], now)
    words: list[str] = []
    required: list[Phrase] = []
    excluded: list[Phrase] = []
    for piece, is_quoted, is_excluded in _pieces(rest.translate(QUOTES)):
        found = surface(piece)
        if is_excluded:
            excluded += [tuple(map(stemmed, found))] if found else []
        elif is_quoted:
            required += [tuple(map(stemmed, found))] if found else []
        else:
            words += [*found, ""]
    plain = [word for word in words if word not in STOP]
    chosen = plain if any(plain) or required or spans else words
    if not (any(chosen) or required or spans):  # Nothing but what is left out: then that is what is looked for.
        chosen, excluded = [*(term for phrase in excluded for term in (*phrase, ""))], []
    return Question(
        words=tuple(dict.fromkeys(phrases(chosen))),
        required=tuple(dict.fromkeys(required)),
        excluded=tuple(dict.fromkeys(excluded)),
        spans=spans,
    )


def phrases(words: list[str]) -> Iterator[Phrase]:
    """Each word as a phrase; characters of scripts without spaces in pairs. An empty word is a gap."""
    before, was_paired = "", False
    for word in [*words, ""]:
        alone = bool(word) and stands_alone(word)
        if before and alone:
            yield before, word
        elif before and not was_paired:
            yield (before,)
        was_paired = bool(before) and alone
        before = word if alone else ""
        if word and not alone:
            yield (stemmed(word),)


def _pieces(text: str) -> Iterator[tuple[str, bool, bool]]:
    shouted = text.isupper()
    negated = False
    for match in PIECE.finditer(text):
        plain = match["plain"] or ""
        if plain in OPERATORS and not shouted:
            negated = plain == "NOT"
            continue
        quoted = match["quoted"]
        yield (plain if quoted is None else quoted), quoted is not None, negated or bool(match["minus"])
        negated = False


YEARS_BACK = 10
NAMES = (
    *(("january", "januar", "janvier", "enero", "gennaio", "janeiro", "jan"),),
    *(("february", "februar", "février", "febrero", "febbraio", "fevereiro", "feb"),),
    *(("march", "märz", "mars", "marzo", "março", "mar"), ("april", "avril", "abril", "aprile", "apr")),
    *(("may", "mai", "mayo", "maggio", "maio"), ("june", "juni", "juin", "junio", "giugno", "junho", "jun")),
    *(("july", "juli", "juillet", "julio", "luglio", "julho", "jul"), ("august", "août", "agosto", "aug")),
    ("september", "septembre", "septiembre", "settembre", "setembro", "sept", "sep"),
    *(("october", "oktober", "octobre", "octubre", "ottobre", "outubro", "oct"),),
    *(("november", "novembre", "noviembre", "novembro", "nov"),),
    ("december", "dezember", "décembre", "diciembre", "dicembre", "dezembro", "dec"),
)
MONTHS = {name: number for number, names in enumerate(NAMES, 1) for name in names}
DAYS = (
    *(("monday", "montag", "lundi", "lunes", "月曜日", "星期一", "周一", "월요일"),),
    *(("tuesday", "dienstag", "mardi", "martes", "火曜日", "星期二", "周二", "화요일"),),
    *(("wednesday", "mittwoch", "mercredi", "miércoles", "水曜日", "星期三", "周三", "수요일"),),
    *(("thursday", "donnerstag", "jeudi", "jueves", "木曜日", "星期四", "周四", "목요일"),),
    *(("friday", "freitag", "vendredi", "viernes", "金曜日", "星期五", "周五", "금요일"),),
    *(("saturday", "samstag", "samedi", "sábado", "土曜日", "星期六", "周六", "토요일"),),
    *(("sunday", "sonntag", "dimanche", "domingo", "日曜日", "星期日", "周日", "일요일"),),
)
WEEKDAYS = {name: number for number, names in enumerate(DAYS) for name in names}
# What is counted back from today: (unit, how many).
RELATIVE = {
    ("day", 2): ("the day before yesterday", "vorgestern", "avant-hier", "anteayer", "前天", "一昨日", "그저께"),
    ("day", 1): ("yesterday", "last night", "gestern", "hier", "ayer", "昨天", "昨日", "어제"),
    ("day", 0): ("today", "this morning", "heute", "aujourd'hui", "hoy", "今天", "今日", "오늘"),
    ("week", 1): ("last week", "letzte woche", "la semaine dernière", "la semana pasada", "上周", "先週", "지난주"),
    ("week", 0): ("this week", "diese woche", "cette semaine", "esta semana", "这周", "本周", "今週", "이번 주"),
    ("month", 1): ("last month", "letzten monat", "le mois dernier", "el mes pasado", "上个月", "先月", "지난달"),
    ("month", 0): ("this month", "diesen monat", "ce mois-ci", "este mes", "这个月", "今月", "이번 달"),
    ("year", 1): ("last year", "letztes jahr", "l'année dernière", "el año pasado", "去年", "昨年", "작년"),
    ("year", 0): ("this year", "dieses jahr", "cette année", "este año", "今年", "올해"),
}
BACK = {name: unit for unit, names in RELATIVE.items() for name in names}
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
COUNTS = {word: number for number, word in enumerate(NUMBERS, 1)} | {"a": 1, "an": 1}


def _any(names: dict[str, int] | dict[str, tuple[str, int]]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


MONTH_BEFORE = r"(?:in|on|of|during|since|until|around|early|late|mid|last|next|im|en|em|à|fin|le|ende|anfang)\W+"
NUMBERED = re.compile(r"\b(\d{4})[-/.](\d{1,2})(?:[-/.](\d{1,2}))?\b")
EASTERN = re.compile(r"(?:(\d{4})\s*[年년]\s*)?(\d{1,2})\s*[月월](?:\s*(\d{1,2})\s*[日일])?")
NAMED = re.compile(
    rf"(?P<before>{MONTH_BEFORE})?(?:\b(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+|de\s+)?)?"
    rf"\b(?P<month>{_any(MONTHS)})\b\.?(?:\s+(?P<after>\d{{1,2}})(?:st|nd|rd|th)?\b)?(?:,?\s+(?:de\s+)?(?P<year>\d{{4}})\b)?"
)
AGO = re.compile(rf"\b(\d{{1,3}}|{_any(COUNTS)})\s+(day|week|month|year)s?\s+ago\b")
PAST = re.compile(rf"\b(?:last|past)\s+(\d{{1,3}}|{_any(COUNTS)})\s+(day|week|month|year)s\b")
BACKWARDS = re.compile(rf"(?<![a-z])(?:{_any(BACK)})(?![a-z])")
WEEKDAY = re.compile(rf"(?<![a-z])(?:(?:on|last|am|le|el)\s+)?({_any(WEEKDAYS)})(?![a-z])")
YEAR = re.compile(r"(?<![\d-])((?:19|20)\d\d)(?!\d|[-/.]\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A time span from `start` to before `end`, in seconds since 1970, by this machine's time zone."""

    start: float
    end: float


def dated(question: str, now: float) -> tuple[tuple[Span, ...], str]:
    """The time spans that a question names, and the question without purely relative words ("yesterday"); a month
    without a year means that month in each of the last ten years."""
    today = datetime.fromtimestamp(now, UTC).astimezone().date()
    spans: list[tuple[date, date]] = []
    rest = question.lower()
    for pattern, read in READERS:
        for match in pattern.finditer(rest):
            spans += read(match, today)
        # What was understood is not read again as something else.
        rest = pattern.sub(lambda match: " " * len(match[0]), rest)
    undated = question
    for pattern in (BACKWARDS, AGO, PAST):
        undated = re.sub(pattern.pattern, " ", undated, flags=re.IGNORECASE)
    return tuple(dict.fromkeys(Span(start=_second(first), end=_second(last)) for first, last in spans)), undated


Days = Iterator[tuple[date, date]]


def _numbered(match: re.Match[str], today: date) -> Days:
    year, month, day = match[1], match[2], match[3]
    years = [int(year)] if year else [today.year - back for back in range(YEARS_BACK)]
    for each in years:
        yield from _days(each, int(month), int(day) if day else 0)


def _named(match: re.Match[str], today: date) -> Days:
    day = match["day"] or match["after"]
    # "may" and "march" are words too.
    if not (day or match["year"] or match["before"]):
        return
    years = [int(match["year"])] if match["year"] else [today.year - back for back in range(YEARS_BACK)]
    for year in years:
        yield from _days(year, MONTHS[match["month"]], int(day) if day else 0)


def _year(match: re.Match[str], _today: date) -> Days:
    yield date(int(match[1]), 1, 1), date(int(match[1]) + 1, 1, 1)


def _backwards(match: re.Match[str], today: date) -> Days:
    yield _unit(today, *BACK[match[0]])


def _ago(match: re.Match[str], today: date) -> Days:
    yield _unit(today, match[2], _number(match[1]))


def _past(match: re.Match[str], today: date) -> Days:
    yield _unit(today, match[2], _number(match[1]))[0], today + timedelta(days=1)


def _weekday(match: re.Match[str], today: date) -> Days:
    back = (today.weekday() - WEEKDAYS[match[1]]) % 7 or 7
    first = today - timedelta(days=back)
    yield first, first + timedelta(days=1)


READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], Days]], ...] = (
    (NUMBERED, _numbered),
    (EASTERN, _numbered),
    (BACKWARDS, _backwards),
    (AGO, _ago),
    (PAST, _past),
    (NAMED, _named),
    (WEEKDAY, _weekday),
    (YEAR, _year),
)


def _number(word: str) -> int:
    return int(word) if word.isdigit() else COUNTS[word]


def _unit(today: date, unit: str, back: int) -> tuple[date, date]:
    if unit == "day":
        first = today - timedelta(days=back)
        return first, first + timedelta(days=1)
    if unit == "week":
        first = today - timedelta(days=today.weekday() + 7 * back)
        return first, first + timedelta(days=7)
    if unit == "year":
        return date(today.year - back, 1, 1), date(today.year - back + 1, 1, 1)
    months = today.year * 12 + today.month - 1 - back
    return date(months // 12, months % 12 + 1, 1), date((months + 1) // 12, (months + 1) % 12 + 1, 1)


def _days(year: int, month: int, day: int) -> Days:
    try:
        first = date(year, month, day or 1)
        yield first, first + timedelta(days=1) if day else date(year + month // 12, month % 12 + 1, 1)
    except ValueError:
        return  # Not a date: 2023-15, 31 June.


def _second(day: date) -> float:
    return datetime.combine(day, time()).astimezone().timestamp()
