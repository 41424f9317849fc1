from hermes_agent.core.messages import File, Image, Message, Origin, Role, Text, said
from hermes_agent.core.shown import additions, words_of


def of_user(*parts: Text | Image | File) -> Message:
    return Message(role=Role.USER, parts=parts)


def test_a_person_sees_their_own_words_and_a_label_for_the_rest():
    message = of_user(
        Text(text="[Skill review, folder /s: follow it for what is asked.]\nLong\ntext", origin=Origin.SKILL),
        Text(text="\n\nthe last commit", origin=Origin.OWNER),
        Text(text="notes.md:\none\ntwo\n", origin=Origin.FILE),
        Text(text="piped", origin=Origin.FILE),
        Text(text="(large, kept whole in `x`)", origin=Origin.RUNTIME),
        Image(),
        File(name="a.pdf", media_type="application/pdf"),
    )

    assert words_of(message) == "the last commit"
    assert additions(message) == ["/review", "notes.md, 2 lines", "1 line", "picture", "a.pdf"]


def test_no_note_of_the_runtime_is_shown():
    marked = said('<runtime mark="66094e989a48">\n## Skills that may fit\nx\n</runtime>\nhello')

    assert words_of(marked) == "hello"
    assert (words_of(said("hi")), additions(said("hi"))) == ("hi", [])


def test_a_reply_is_shown_whole():
    reply = Message(role=Role.ASSISTANT, parts=(Text(text="yes"), Image()))
    assert (words_of(reply), additions(reply)) == ("yes", [])
