"""Constraints in what was learned, on both databases."""

from dataclasses import replace

from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Job, JobKind
from hermes_agent.store.learning.lessons import Lesson, LessonState, Sort
from hermes_agent.store.versions import Author, Change, Kind, VersionState

ONE = Lesson(
    sort=Sort.AVOID,
    kind=Kind.MEMORY,
    item="MEMORY.md",
    line="jq is not installed.",
    probe="command -v jq",
    version=1,
    session="s1",
    principal="cli:ann",
    at=5.0,
    expires=90.0,
    next=10.0,
)


async def wrote(store: Store, author: Author) -> int:
    change = Change(
        kind=Kind.MEMORY, item="MEMORY.md", at=1.0, author=author, action="add", before=None, after=author.encode()
    )
    return await store.write(lambda tx: store.versions.record(tx, change, VersionState.DONE))


async def any_due(store: Store, now: float) -> bool:
    return await store.read(lambda tx: store.lessons.any(tx, now))


async def test_a_lesson_comes_back_as_it_was_kept_and_a_line_is_in_force_once(store: Store):
    await store.lessons.sweep(1, [ONE, replace(ONE, probe="true")])
    await store.lessons.sweep(2, [replace(ONE, sort=Sort.PREFER, line="Never tabs.", probe="", expires=None, at=6.0)])

    second, first = await store.lessons.live()
    assert first == replace(ONE, id=first.id)
    assert (second.sort, second.expires) == (Sort.PREFER, None)
    assert await store.lessons.live(Sort.AVOID) == [first]
    assert await store.lessons.get(first.id) == first
    assert await store.lessons.get(99) is None


async def test_what_is_due_is_looked_at_then_postponed_or_ended(store: Store):
    await store.lessons.sweep(1, [ONE])
    (lesson,) = await store.lessons.due(10.0)
    assert await any_due(store, 10.0)
    assert not await any_due(store, 9.0)

    await store.lessons.postpone(lesson.id, 20.0)
    assert await store.lessons.due(19.0) == []
    assert await store.lessons.end(lesson.id, LessonState.PASSED, 21.0, 7)
    assert not await store.lessons.end(lesson.id, LessonState.EXPIRED, 22.0)

    found = await store.lessons.get(lesson.id)
    assert (found.state, found.ended, found.retired) == (LessonState.PASSED, 21.0, 7)
    assert await store.lessons.live() == []
    await store.lessons.sweep(1, [ONE])
    assert len(await store.lessons.live()) == 1


async def test_a_version_of_an_agent_is_looked_through_once_and_by_one_job(store: Store):
    await wrote(store, Author.OWNER)
    assert not await any_due(store, 1.0)
    number = await wrote(store, Author.BACKGROUND)
    assert await any_due(store, 1.0)
    job = Job(id="j", kind=JobKind.PROBE, session="s1", principal="p", what="", first=0, last=0, created=1.0)
    await store.write(lambda tx: store.learning.queue(tx, job))
    assert not await any_due(store, 1.0)

    assert (await store.lessons.after(10))[-1] == number
    await store.lessons.sweep(number, [])
    assert await store.lessons.after(10) == []
    claim = await store.learning.claim([JobKind.PROBE])
    assert claim.job.id == "j"
