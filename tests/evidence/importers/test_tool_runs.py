"""Which of several runs of one arm is which: the same run, a retry, a repetition, another setting."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_fusion_audit.evidence.importers.tool_runs import Standing, ToolRun, short_names, standings


def run(file: str, **fields: Any) -> ToolRun:
    identity = fields.pop("identity", file)
    made = {
        "suite": "s",
        "split": "all",
        "arm": "member:m",
        "identity": identity,
        "lineage": identity,
        "settings": "abcdef0123",
    }
    return ToolRun(**{**made, "file": file, **fields})


def placed(*runs: ToolRun) -> dict[str, Standing]:
    return {file: standing for (file, _), standing in standings(runs).items()}


def test_runs_are_replicates_in_the_order_of_their_start() -> None:
    found = placed(run("b", started="2026-01-01"), run("a", started="2026-01-02"))
    assert {file: standing.place.replicate for file, standing in found.items()} == {"b": 0, "a": 1}


def test_repeats_before_a_run_are_those_of_the_runs_before_it() -> None:
    found = placed(run("a", started="1", repeats=3), run("b", started="2", repeats=2), run("c", started="3"))
    assert [found[file].place.repeats_before for file in "abc"] == [0, 3, 5]


def test_files_of_one_identity_share_a_place() -> None:
    found = placed(run("a.json", identity="e1"), run("a.eval", identity="e1"), run("b.json", identity="e2"))
    assert found["a.json"].place == found["a.eval"].place
    assert {standing.place.replicate for standing in found.values()} == {0, 1}


def test_of_a_lineage_the_finished_run_stands_even_when_it_started_first() -> None:
    done = run("done", lineage="l", started="1")
    broken = run("broken", lineage="l", started="2", finished=False)
    found = placed(broken, done)
    assert found["done"].superseded_by is None
    assert found["broken"].superseded_by == "done"


def test_unfinished_runs_stand_when_there_is_no_other() -> None:
    found = placed(run("a", finished=False, started="1"), run("b", finished=False, started="2"))
    assert [found[file].place.replicate for file in "ab"] == [0, 1]
    assert all(standing.superseded_by is None for standing in found.values())


def test_arms_suites_and_splits_do_not_meet() -> None:
    found = placed(run("a"), run("b", arm="member:n"), run("c", suite="t"), run("d", split="x"))
    assert {standing.place.replicate for standing in found.values()} == {0}
    assert all(not standing.notes for standing in found.values())


def test_settings_make_configurations_unless_the_user_named_them() -> None:
    found = placed(run("a", settings="1" * 64), run("b", settings="2" * 64))
    assert {standing.place.full_arm for standing in found.values()} == {"member:m@11111111", "member:m@22222222"}
    assert {note.code for standing in found.values() for note in standing.notes} == {"settings_differ"}
    named = placed(run("a", settings="1" * 64, config="mine"), run("b", settings="2" * 64, config="mine"))
    assert {standing.place.full_arm for standing in named.values()} == {"member:m@mine"}
    assert {standing.place.replicate for standing in named.values()} == {0, 1}


def test_settings_that_are_not_recorded_join_the_only_ones_that_are() -> None:
    found = placed(run("a", settings=""), run("b", settings="1" * 64))
    assert {standing.place.full_arm for standing in found.values()} == {"member:m"}
    three = placed(run("a", settings=""), run("b", settings="1" * 64), run("c", settings="2" * 64))
    assert {standing.place.config for standing in three.values()} == {"unrecorded", "11111111", "22222222"}


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.booleans(), st.sampled_from("123")), max_size=8
    ),
    st.randoms(),
)
def test_places_do_not_depend_on_the_order_of_files_and_never_collide(drawn: list[Any], random: Any) -> None:
    runs = [
        run(
            f"f{n}",
            lineage=lineage,
            identity=f"{lineage}{n}",
            settings=settings * 8,
            finished=finished,
            started=started,
        )
        for n, (settings, lineage, finished, started) in enumerate(drawn)
    ]
    turned = list(runs)
    random.shuffle(turned)
    assert standings(runs) == standings(turned)
    stood = [(s.place.config, s.place.replicate) for s in standings(runs).values() if s.superseded_by is None]
    assert len(set(stood)) == len(stood)
    for standing in standings(runs).values():
        if standing.superseded_by is not None:
            assert standings(runs)[standing.superseded_by, ""].superseded_by is None


def test_short_names_stay_short_where_they_can() -> None:
    assert short_names({"a/x": "x", "b/x": "x", "a/y": "y"}) == {"a/x": "a/x", "b/x": "b/x", "a/y": "y"}
