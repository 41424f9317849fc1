"""The command group `kanban`: its verbs, and how their results read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from hermes_agent.app.operations.access import Argument, Kind, Noun, Verb, option, place, verb
from hermes_agent.app.operations.board import (
    Counts,
    Listing,
    Made,
    archive_card,
    assign_card,
    attach_file,
    block_card,
    cancel_card,
    comment_card,
    complete_card,
    count_cards,
    create_card,
    delete_card,
    export_cards,
    import_cards,
    link_cards,
    list_boards,
    list_cards,
    list_events,
    list_runs,
    move_card,
    show_card,
    start_card,
    unblock_card,
    update_card,
    watch_card,
)
from hermes_agent.core.clock import moment
from hermes_agent.core.messages import Origin
from hermes_agent.store.work.cards import Card, CardEvent, CardRow, CardRun
from hermes_agent.work.board.beads import Plan
from hermes_agent.work.board.board import CardView
from hermes_agent.work.board.new_cards import BASE, MAIN


def listed(found: Listing) -> str:
    """A line for each card."""
    lines = [_line(row) for row in found.cards] or ["There are no cards."]
    return "\n".join([*lines, found.notice] if found.notice else lines)


def _line(row: CardRow) -> str:
    waits = f", waits for {row.parents_left}" if row.parents_left else ""
    return f"{row.id}  {row.status:9} p{row.priority}  {row.title}  ({row.assignee or BASE}{waits})"


def shown(view: CardView) -> str:
    """A card in lines."""
    card = view.card
    facts = {
        "board": card.board,
        "assignee": card.assignee or BASE,
        "priority": str(card.priority),
        "workspace": card.folder or card.source or card.workspace.value,
        "branch": card.branch,
        "check": card.validator,
        "blocked": f"{card.blocked or ''} {card.blocked_on}".strip(),
        "attempts": f"{card.attempts} of {card.max_attempts}, {card.crashes} crashes",
        "waits for": ", ".join(f"{row.id} ({row.status})" for row in view.parents),
        "wait for it": ", ".join(f"{row.id} ({row.status})" for row in view.children),
        "files": ", ".join(file.name for file in view.files),
    }
    lines = [
        f"{card.id} {card.title} [{card.status}]",
        *(f"  {name}: {value}" for name, value in facts.items() if value),
    ]
    texts = [card.body, f"Summary: {card.summary}" if card.summary else ""]
    return "\n\n".join(["\n".join(lines), *filter(None, texts), logged(view.events)])


def logged(events: Sequence[CardEvent]) -> str:
    """A line for each event; what others than people wrote is marked."""
    return "\n".join(
        f"{moment(each.at)} {each.kind} by {each.by}{_mark(each)}{': ' + each.text if each.text else ''}"
        for each in events
    )


def _mark(event: CardEvent) -> str:
    return " (from outside)" if event.origin is Origin.TOOL and event.text else ""


def ran(runs: Sequence[CardRun]) -> str:
    """A line for each process."""
    return "\n".join(
        f"{run.epoch}  {moment(run.started)}  {run.kind}  {run.profile or BASE}  {run.outcome or 'running'}"
        f"{'' if run.exit_code is None else f' (exit code {run.exit_code})'}  {run.session}  {run.note}".rstrip()
        for run in runs
    )


def counted(found: Counts) -> str:
    """A line for each board."""
    lines = [
        f"{name}: " + ", ".join(f"{count} {status}" for status, count in counts.items())
        for name, counts in found.boards.items()
    ]
    return "\n".join([*(lines or ["There are no cards."]), *filter(None, (found.notice,))])


def planned(plan: Plan) -> str:
    """What an import does, or did."""
    did = "Imported" if plan.applied else "Would import"
    lines = [f"{did} {plan.new} cards with {plan.links} links; {plan.known} are here already.", *plan.skipped]
    return "\n".join(lines if plan.applied else [*lines, "Nothing was changed: add --apply."])


def _stands(card: Card) -> str:
    waits = f"; it waits for {card.parents_left} card(s)" if card.parents_left else ""
    return f"{card.id} is {card.status}{waits}."


def _made(card: Made) -> str:
    return _stands(card) if card.is_new else f"{card.id} was there already; it is {card.status}."


CARD = place("card", metavar="CARD")
CREATES = (
    place("title", Kind.WORDS),
    option("body", "--body", "What is to be done.", Kind.TEXT, ""),
    option("assignee", "--assignee", "The profile that works on it.", Kind.TEXT, ""),
    option("parents", "--parents", "Cards that come first, with commas.", Kind.TEXT, ""),
    option("workspace", "--workspace", "scratch, worktree:REPOSITORY or dir:FOLDER.", Kind.TEXT, "scratch"),
    option("branch", "--branch", "The branch of a worktree.", Kind.TEXT, ""),
    option("board", "--board", "The board.", Kind.TEXT, MAIN),
    option("tenant", "--tenant", "A word to group cards by.", Kind.TEXT, ""),
    option("priority", "--priority", "0 (most urgent) to 4.", Kind.NUMBER, 2),
    option("check", "--check", "human, profile:NAME, command:COMMAND, or a check of the settings.", Kind.TEXT, ""),
    option("skills", "--skills", "Skills to use, with commas.", Kind.TEXT, ""),
    option("toolsets", "--toolsets", "The only toolsets it has, with commas.", Kind.TEXT, ""),
    option("model", "--model", "The model that works on it.", Kind.TEXT, ""),
    option("max_minutes", "--max-minutes", "Minutes that one attempt may take; 0: any.", Kind.NUMBER, 0),
    option("max_attempts", "--max-attempts", "Failed attempts before it is blocked; 0: as set.", Kind.NUMBER, 0),
    option("goal_turns", "--goal-turns", "Runs it has by itself until it is complete; 0: one.", Kind.NUMBER, 0),
    option("key", "--key", "The same key again gives the first card.", Kind.TEXT, ""),
    option("triage", "--triage", "It has to be thought through first."),
    option("hold", "--hold", "It begins blocked, until a person unblocks it."),
)
CHANGES = (
    CARD,
    option("title", "--title", "The title.", Kind.TEXT, ""),
    option("body", "--body", "What is to be done.", Kind.TEXT, ""),
    option("priority", "--priority", "0 (most urgent) to 4.", Kind.NUMBER, -1),
    option("tenant", "--tenant", "A word to group cards by.", Kind.TEXT, ""),
    option("model", "--model", "The model that works on it.", Kind.TEXT, ""),
    option("check", "--check", "As in create; none takes it away.", Kind.TEXT, ""),
    option("max_minutes", "--max-minutes", "Minutes that one attempt may take.", Kind.NUMBER, -1),
    option("max_attempts", "--max-attempts", "Failed attempts before it is blocked.", Kind.NUMBER, -1),
    option("goal_turns", "--goal-turns", "Runs it has by itself until it is complete.", Kind.NUMBER, -1),
)
FILTERS = (
    place("status", default=""),
    option("board", "--board", "Only this board.", Kind.TEXT, ""),
    option("assignee", "--assignee", "Only cards of this profile.", Kind.TEXT, ""),
    option("tenant", "--tenant", "Only cards with this word.", Kind.TEXT, ""),
)


def _moves(name: str, about: str, act: Callable[..., Awaitable[Card]], *more: Argument) -> Verb:
    return verb(name, about, act, CARD, *more, text=_stands)


KANBAN = Noun(
    name="kanban",
    short_help="Give work to agents as cards on a board.",
    help="Give work to agents as cards on a board: each card is done by a process of its own.",
    offline=True,
    verbs=(
        verb("list", "List cards, the most urgent first.", list_cards, *FILTERS, text=listed),
        verb("show", "Show a card with everything around it.", show_card, CARD, text=shown),
        verb("add", "Add a card.", create_card, *CREATES, text=_made),
        verb("update", "Change what a card says.", update_card, *CHANGES, text=_stands),
        verb("remove", "Remove a card that never ran; any other is archived.", delete_card, CARD),
        _moves("assign", "Give a card to a profile.", assign_card, place("assignee", metavar="PROFILE")),
        _moves("move", "Move a card to triage, todo or ready; a running one is stopped.", move_card, place("status")),
        _moves("start", "Have a waiting card begin as soon as there is room.", start_card),
        _moves("block", "Hold a card back until a person unblocks it.", block_card, place("why", Kind.WORDS)),
        _moves("unblock", "Unblock a card, with an answer.", unblock_card, place("text", Kind.WORDS, "", "ANSWER")),
        _moves("complete", "Say that a card is done, or accept it.", complete_card, place("summary", Kind.WORDS)),
        _moves("cancel", "Cancel a card; its process is stopped.", cancel_card),
        _moves("archive", "Archive a card that is done or cancelled.", archive_card),
        verb("comment", "Say something on a card.", comment_card, CARD, place("text", Kind.WORDS), nothing="Said."),
        verb(
            "link",
            "Make a card wait for another one, its parent.",
            link_cards,
            place("parent", metavar="PARENT"),
            place("child", metavar="CHILD"),
            option("remove", "--remove", "It waits no longer."),
            text=_stands,
        ),
        verb(
            "attach",
            "Keep a copy of a file with a card.",
            attach_file,
            CARD,
            place("path", metavar="FILE"),
            text=lambda file: f"{file.name} ({file.bytes:,} bytes) is kept with {file.card}.",
        ),
        verb(
            "watch",
            "Tell a chat how a card, or a whole board (board:NAME), goes.",
            watch_card,
            CARD,
            option("to", "--to", "The chat, as telegram:dm:123.", Kind.TEXT, ""),
            option("stop", "--stop", "It is told no longer."),
        ),
        verb("log", "Show what happened to a card.", list_events, CARD, text=logged),
        verb("runs", "Show the processes of a card.", list_runs, CARD, text=ran, nothing="Nobody worked on it yet."),
        verb("stats", "Count the cards by board and status.", count_cards, text=counted),
        verb("boards", "List the boards, or create one.", list_boards, place("name", default=""), text="\n".join),
        verb(
            "import",
            "Show what an export of beads (bd) would bring; --apply imports it.",
            import_cards,
            place("path", metavar="FILE"),
            option("apply", "--apply", "Do it."),
            option("board", "--board", "The board.", Kind.TEXT, MAIN),
            text=planned,
        ),
        verb(
            "export",
            "Print all cards of a board for beads (bd import).",
            export_cards,
            option("board", "--board", "The board.", Kind.TEXT, MAIN),
        ),
    ),
)
