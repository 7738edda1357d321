"""The ``fusion-audit`` command. Its subcommands grow with what the tool can do; this one needs no pytest session."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pytest_fusion_audit import __version__
from pytest_fusion_audit.errors import EvidenceError, FusionAuditError, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_fusion_audit.evidence.rundir import RunDirectory


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status: 0 done, 4 a mistake in what was asked for."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    try:
        chosen.run(chosen)
    except (FusionAuditError, OSError) as error:
        print(f"fusion-audit: {one_line(error)}", file=sys.stderr)
        return 4
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fusion-audit", description="Read and render audits of LLM ensembles (pytest-fusion-audit)."
    )
    parser.add_argument("--version", action="version", version=f"fusion-audit {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    render = commands.add_parser(
        "render",
        help="score the stored evidence of a run again and write its artifacts, or show the findings of a test report",
        description="Score the stored evidence of audit/RUN and write scorecard.json and rubric-scorecard.md; the same "
        "evidence gives the same bytes. With --from, show the findings that travelled through a test report.",
    )
    what = render.add_mutually_exclusive_group(required=True)
    what.add_argument("run_id", nargs="?", metavar="RUN", help="run id: the folder audit/RUN below this one")
    what.add_argument("--from", dest="report", type=Path, metavar="REPORT", help="a report.json of pytest-json-report")
    render.set_defaults(run=_render)

    look = commands.add_parser(
        "import",
        help="read recorded files without storing anything: what each was taken for, and what stays unknown",
        description="Read recorded files as --fusion-import would and print for each the format it was taken for, "
        "the records it gave and what stays unknown. Nothing is stored.",
    )
    look.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="file or folder")
    look.set_defaults(run=_import)

    spend = commands.add_parser(
        "spend",
        help="what a run spent, by phase, model and stage, with its orphans and reservations",
        description="Read the call journal of audit/RUN and print what was spent; nothing is changed.",
    )
    spend.add_argument("run_id", metavar="RUN", help="run id, or the path audit/RUN")
    spend.add_argument("--invoice", metavar="USD", help="the provider's total, to print the difference")
    spend.set_defaults(run=_spend)

    settle = commands.add_parser(
        "settle",
        help="charge an orphan (sent, never settled) with the provider's figure",
        description="An orphan stays charged at its reservation until somebody knows better. Give what the provider "
        "charged for it; 0 when it charged nothing.",
    )
    settle.add_argument("run_id", metavar="RUN", help="run id, or the path audit/RUN")
    settle.add_argument("call", metavar="CALL", help="id of the call as `fusion-audit spend` prints it")
    settle.add_argument("dollars", metavar="USD", help="what the provider charged")
    settle.set_defaults(run=_settle)
    return parser


def _run_directory(run_id: str) -> RunDirectory:
    from pytest_fusion_audit.evidence.rundir import RunDirectory, runs_by_age  # noqa: PLC0415

    name = run_id.removesuffix("/").removeprefix("audit/")
    runs = runs_by_age(Path.cwd()) if name == "latest" else []
    return RunDirectory(Path.cwd(), runs[0] if runs else name)


def _spend(chosen: argparse.Namespace) -> None:
    from pytest_fusion_audit.metering.spend import spend_lines, spend_of  # noqa: PLC0415

    run = _run_directory(chosen.run_id)
    for line in spend_lines(run.run_id, spend_of(run.path), chosen.invoice):
        print(line)


def _settle(chosen: argparse.Namespace) -> None:
    from pytest_fusion_audit.evidence.money import usd  # noqa: PLC0415
    from pytest_fusion_audit.metering.spend import phase_records, settle_orphan, spend_of  # noqa: PLC0415

    run = _run_directory(chosen.run_id)
    charged = settle_orphan(run.path, chosen.call, chosen.dollars, session=f"settle-{uuid4().hex}")
    stored = run.read_run()
    if stored is not None and stored["mode"] == "live":  # else its evidence is none of our own
        run.store("phase", phase_records(spend_of(run.path)))
    print(f"{run.shown}: call {chosen.call} is charged with {usd(charged):.6f} USD")


def _render(chosen: argparse.Namespace) -> None:
    from pytest_fusion_audit.report.artifacts import write_artifacts  # noqa: PLC0415 - --help stays quick
    from pytest_fusion_audit.report.text import findings_lines, scorecard_lines  # noqa: PLC0415
    from pytest_fusion_audit.rubric.loading import load_rubric  # noqa: PLC0415

    if chosen.report is not None:
        lines = findings_lines(_findings(chosen.report), load_rubric())
    else:
        from pytest_fusion_audit.rubric.scorecard import score_rubric  # noqa: PLC0415

        run = _run_directory(chosen.run_id)
        scorecard = score_rubric(run.evidence(), load_rubric())
        write_artifacts(run, scorecard)
        lines = scorecard_lines(scorecard.to_json())
    for line in lines:
        print(line)


def _findings(report: Path) -> list[dict[str, Any]]:
    """Scores that travelled in the ``user_properties`` of a test report."""
    try:
        tests = json.loads(report.read_bytes())["tests"]
        rows = [row for test in tests for row in test.get("user_properties", ())]
        found = [row["fusion_score"] for row in rows if "fusion_score" in row]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise EvidenceError(f"{report}: not a report of pytest-json-report; make one with --json-report") from None
    if not found:
        raise EvidenceError(f"{report}: holds no finding of an audit; run pytest audits/ with --json-report")
    return found


def _import(chosen: argparse.Namespace) -> None:
    from pytest_fusion_audit.evidence.importers import import_run  # noqa: PLC0415
    from pytest_fusion_audit.evidence.records import ImportedFile  # noqa: PLC0415

    for record in import_run(*chosen.paths).of(ImportedFile):
        counts = ", ".join(f"{count} {kind}" for kind, count in record.records.items()) or "no records"
        print(f"{record.source}: {record.format}: {counts}")
        for text in record.unknown:
            print(f"    unknown: {text}")
        for note in record.notes:
            print(f"    {note.code}: {note.message}")
