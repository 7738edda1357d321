"""Sessions that only look create nothing, and a project that does not audit notices nothing."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import files_of, run

RUN = ("--fusion-run-id=r", "--fusion-import=recorded")


@pytest.mark.parametrize(
    "looking",
    [
        ("--collect-only", "-q"),
        ("--collect-only", "-q", "-n2"),
        ("--setup-plan",),
        ("--help",),
        ("--markers",),
        ("--fixtures",),
        ("--version",),
    ],
)
def test_looking_creates_nothing(project: pytest.Pytester, looking: tuple[str, ...]) -> None:
    before = files_of(project.path)
    result = run(project, "audits", *looking, *RUN)
    assert result.ret == 0
    assert files_of(project.path) == before


def test_looking_needs_no_run_id(project: pytest.Pytester) -> None:
    result = run(project, "audits", "--collect-only", "-q")
    assert result.ret == 0
    ids = [line for line in result.outlines if "::" in line]
    assert len(ids) == 61
    assert all(line.isascii() for line in ids)
    assert len(set(ids)) == 61


def test_order_of_items_is_the_rubrics_whatever_the_arguments(project: pytest.Pytester) -> None:
    result = run(
        project,
        "audits/test_gates.py",
        "audits/test_dimension_10_architecture_headroom.py",
        "audits/test_dimension_02_ensemble_headroom.py",
        "--collect-only",
        "-q",
    )
    ids = [line.split("[")[1].split("-")[0] for line in result.outlines if "::" in line]
    assert ids == ["2.1", "2.2", "2.3", "2.4", "2.5", "10.1", "10.2", "10.3", "10.4", "A", "B", "C", "D"]


def test_marks_and_fixtures_are_documented(project: pytest.Pytester) -> None:
    marks = run(project, "--markers")
    marks.stdout.fnmatch_lines(["@pytest.mark.criterion(id):*", "@pytest.mark.replay:*", "@pytest.mark.gate_d:*"])
    fixtures = run(project, "--fixtures", "audits")
    fixtures.stdout.fnmatch_lines(["evidence*", "*Price ceiling: 0 USD*"])


def test_inert_in_a_project_that_does_not_audit(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_other="""
        import sys

        def test_nothing_of_ours_is_heavy():
            ours = {name for name in sys.modules if name.startswith("pytest_fusion_audit")}
            assert ours <= {
                "pytest_fusion_audit",
                "pytest_fusion_audit.billing",
            "pytest_fusion_audit.errors",
            "pytest_fusion_audit.plugin",
            "pytest_fusion_audit.terms",
                "pytest_fusion_audit.options",
                "pytest_fusion_audit.items",
                "pytest_fusion_audit.fixtures",
                "pytest_fusion_audit.reporting",
            }, ours
            heavy = {"numpy", "scipy", "pydantic", "yaml", "ijson", "jinja2", "genai_prices", "filelock"}
            assert not heavy & set(sys.modules)
        """
    )
    before = files_of(pytester.path)
    plugins = ("-p", "no:hypothesispytest", "-p", "no:jsonreport", "-p", "no:metadata", "-p", "no:xdist")
    result = pytester.runpytest_subprocess(*plugins)
    result.assert_outcomes(passed=1)
    assert not [line for line in result.outlines if "fusion" in line and not line.startswith("plugins: ")]
    assert files_of(pytester.path) == before


def test_registered_twice_is_registered_once(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("pytest_plugins = ['pytest_fusion_audit.plugin']")
    pytester.makepyfile("def test_passes(): pass")
    result = pytester.runpytest_subprocess("-p", "pytest_fusion_audit.plugin")
    result.assert_outcomes(passed=1)
