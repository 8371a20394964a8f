"""A set put in its place whole."""

import pytest

from bedstone.errors import CallerError
from bedstone.prove.place import require_replaceable, written_beside


def write(folder, *names, text="new"):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def files(folder):
    return {
        str(p.relative_to(folder)): p.read_text()
        for p in folder.rglob("*")
        if p.is_file() and p.name != ".bedstone-export"
    }


@pytest.fixture
def place(tmp_path):
    return tmp_path / "in" / "set"


def exported(place, *names, text="new"):
    with written_beside(place) as folder:
        write(folder, *names, text=text)


def test_a_set_is_there_when_all_of_it_is(place):
    with written_beside(place) as folder:
        write(folder, "definitions/a.json")
        assert not place.exists()
    assert files(place) == {"definitions/a.json": "new"}
    assert list(place.parent.iterdir()) == [place]


def test_what_ends_early_leaves_the_place_as_it_was(place):
    exported(place, "definitions/a.json", text="old")

    def interrupted():
        with written_beside(place) as folder:
            write(folder, "definitions/b.json")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert files(place) == {"definitions/a.json": "old"}
    assert list(place.parent.iterdir()) == [place]


def test_an_earlier_export_is_replaced_and_what_others_wrote_stays(place):
    exported(place, "definitions/a.json", "definitions/b.json", text="old")
    write(place, "traces/t.jsonl", "solutions/me/s.json", text="mine")
    with (place / "traces/t.jsonl").open("a") as appending:
        exported(place, "definitions/b.json", "solutions/us/s.json")
        appending.write(", and more")
    assert files(place) == {
        "definitions/b.json": "new",
        "solutions/us/s.json": "new",
        "solutions/me/s.json": "mine",
        "traces/t.jsonl": "mine, and more",
    }


def test_another_folder_is_refused_unless_told(place):
    require_replaceable(place, replace=False)
    write(place, "definitions/a.json", "notes", text="mine")
    with pytest.raises(CallerError, match="holds something that was not exported"):
        require_replaceable(place, replace=False)
    require_replaceable(place, replace=True)
    exported(place, "definitions/b.json")
    assert files(place) == {"definitions/b.json": "new", "notes": "mine"}
    require_replaceable(place, replace=False)


def test_a_file_is_no_place(tmp_path):
    write(tmp_path, "set")
    with pytest.raises(CallerError, match="is no folder"):
        require_replaceable(tmp_path / "set", replace=True)
    with pytest.raises(CallerError, match="cannot be written"):
        exported(tmp_path / "set" / "below", "a")
