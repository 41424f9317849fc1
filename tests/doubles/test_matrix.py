from tests.doubles.matrix import MatrixPlatform, Room


async def test_a_room_that_is_replaced_names_the_other_one_and_the_other_one_it():
    platform = MatrixPlatform()
    platform.room("!1:x", {"@ann:x": "Ann"})
    platform.replace("!1:x", "!2:x", "@ann:x", closed=True)

    assert platform.rooms["!1:x"].state["m.room.tombstone"]["replacement_room"] == "!2:x"
    assert platform.rooms["!2:x"] == Room(
        people={"@ann:x": "Ann"}, state={"m.room.create": {"predecessor": {"room_id": "!1:x"}}}, closed=True
    )
    assert platform.stream[-1][2]["type"] == "m.room.tombstone"


async def test_what_a_person_says_is_told_once_it_was_asked_for():
    platform = MatrixPlatform()
    await platform.say("hello")
    await platform.again()
    assert platform.received() == 0

    platform.reached = 2
    assert platform.received() == 2
