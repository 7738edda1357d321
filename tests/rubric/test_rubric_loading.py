"""Rubric files: ours as shipped, and everything a user's own can have wrong, named by file and field."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from pytest_fusion_audit import load_rubric
from pytest_fusion_audit.errors import RubricError
from pytest_fusion_audit.evidence.container import Evidence, RunFacts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SMALL: dict[str, Any] = {
    "dimensions": [{"id": 1, "title": "Uplift", "weight": 20}, {"id": 11, "title": "Own", "weight": 5}],
    "criteria": [
        {
            "id": "1.1",
            "title": "Held-out uplift",
            "source": ["locked"],
            "gates": ["A"],
            "least_n": 200,
            "met": "p < 0.05",
        },
        {"id": "11.1", "title": "Ours alone", "source": ["drill"], "met": "it holds"},
    ],
    "gates": {"A": {"title": "Proven", "rule": "1.1 = 2 and 11.1 measured"}},
}


def test_the_shipped_rubric_is_whole() -> None:
    rubric = load_rubric()
    assert (len(rubric.dimensions), len(rubric.criteria), rubric.out_of) == (10, 57, 104)
    assert [len(rubric.dimension(number)) for number in range(1, 11)] == [6, 5, 6, 6, 6, 6, 6, 5, 7, 4]
    assert sorted(rubric.gates) == ["A", "B", "C", "D"]
    assert rubric.gates["C"].rule.criteria == ("7.1", "7.2", "7.3", "7.4")
    assert rubric.gates["B"].rule.held_out
    assert load_rubric() is rubric


def test_gates_named_by_criteria_and_by_rules_agree() -> None:
    rubric = load_rubric()
    by_rule = {(name, gate.id) for gate in rubric.gates.values() for name in gate.rule.criteria}
    assert by_rule == {(criterion.id, gate) for criterion in rubric.criteria for gate in criterion.gates}


def test_criteria_stand_in_the_order_of_their_numbers_and_have_readable_names() -> None:
    criteria = load_rubric().criteria
    assert [c.id for c in criteria[:7]] == ["1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "2.1"]
    assert [c.id for c in criteria[-4:]] == ["10.1", "10.2", "10.3", "10.4"]
    assert str(criteria[0]) == "1.1-held-out-uplift-on-the-primary-coding-benchmark"
    assert str(load_rubric().criterion("3.3")) == "3.3-reliability-of-the-judges-structured-output"
    assert all(str(c).isascii() and " " not in str(c) for c in criteria)
    assert len({str(c) for c in criteria}) == 57


def write(path: Path, document: Any) -> Path:
    file = path / "own.yaml"
    file.write_text(document if isinstance(document, str) else yaml.safe_dump(document, sort_keys=False))
    return file


def test_a_users_own_file_is_taken_and_what_nobody_measures_is_not_run(tmp_path: Path) -> None:
    rubric = load_rubric(write(tmp_path, SMALL))
    assert [c.id for c in rubric.criteria] == ["1.1", "11.1"]
    assert rubric.out_of == 25
    found = rubric.criterion("11.1").measure(Evidence(RunFacts(), []))
    assert (found.status, found.reasons) == (
        "not_run",
        ("needs a measure: this version has none for criterion 11.1",),
    )


def change(**paths: Any) -> Callable[[], Any]:
    def made() -> Any:
        document = deepcopy(SMALL)
        for path, value in paths.items():
            node: Any = document
            *steps, last = path.split("__")
            for step in steps:
                node = node[int(step) if step.isdecimal() else step]
            node[int(last) if last.isdecimal() else last] = value
        return document

    return made


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: "dimensions: [", "not YAML at line"),
        pytest.param(lambda: "", "the document: ", id="empty"),
        (lambda: "[1, 2]", "the document: "),
        (change(surprise=1), "surprise: Extra inputs are not permitted"),
        (change(criteria__0__weight=3), "criteria[0].weight: Extra inputs are not permitted"),
        (
            change(criteria__0__id=1.1),
            'criteria[0].id: Input should be a valid string (write the id in quotes, "1.10")',
        ),
        (change(criteria__0__id="1.x"), "criteria[0].id: String should match pattern"),
        pytest.param(change(criteria__0__id="1.01"), "criteria[0].id: String should match pattern", id="zero"),
        (change(criteria__1__id="1.1"), "criteria[1] (1.1).id: stands there twice"),
        (change(criteria__1__id="12.1"), "criteria[1] (12.1).id: there is no dimension 12"),
        (change(criteria__0__source=["books"]), "criteria[0].source[0]: Input should be"),
        (change(criteria__0__source=[]), "criteria[0].source: List should have at least 1 item"),
        (change(criteria__0__source=["locked", "locked"]), "criteria[0] (1.1).source: a source stands there twice"),
        (change(criteria__0__least_n=0), "criteria[0].least_n: Input should be greater than or equal to 1"),
        (change(criteria__0__least_n="many"), "criteria[0].least_n: Input should be a valid integer"),
        (change(criteria__0__by="us"), "criteria[0].by: Input should be 'target' or 'tool'"),
        (change(criteria__0__gates=["Z"]), "criteria[0] (1.1).gates: there is no gate Z"),
        (change(dimensions__1__id=1), "dimensions[1].id: dimension 1 stands there twice"),
        (change(dimensions__1__weight=-1), "dimensions[1].weight: Input should be greater than or equal to 0"),
        (change(gates__A__rule="1.1 is great"), "gates.A.rule: clause '1.1 is great' is not understood; write"),
        (change(gates__A__rule="1.1 = 3"), "gates.A.rule: clause '1.1 = 3' is not understood"),
        (change(gates__A__rule="1.1 = 2 and"), "gates.A.rule: clause '' is not understood"),
        (
            change(gates__A__rule="1.1 = 2 and 1.9 measured"),
            "gates.A.rule: clause '1.9 measured' names 1.9, which is no",
        ),
        (change(gates__A__rule="at least one of 1.1, 4.4 shipped"), "names 4.4, which is no criterion of this rubric"),
    ],
)
def test_a_malformed_file_is_refused_by_name_and_field(made: Callable[[], Any], said: str, tmp_path: Path) -> None:
    file = write(tmp_path, made())
    with pytest.raises(RubricError) as refused:
        load_rubric(file)
    message = str(refused.value)
    assert message.startswith(f"{file}: ")
    assert said in message
    assert "\n" not in message


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(RubricError, match=r"nowhere\.yaml: cannot be read \(No such file"):
        load_rubric(tmp_path / "nowhere.yaml")
    (tmp_path / "latin.yaml").write_bytes("title: \xe9".encode("latin-1"))
    with pytest.raises(RubricError, match=r"latin\.yaml: not UTF-8 at byte 7"):
        load_rubric(tmp_path / "latin.yaml")
    (tmp_path / "broken.yaml").write_text("a: b\n c: [d")
    with pytest.raises(RubricError, match=r"broken\.yaml: not YAML at line 2"):
        load_rubric(str(tmp_path / "broken.yaml"))
