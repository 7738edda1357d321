"""Recorded files of other tools, and small files in their formats that tests damage or change."""

from __future__ import annotations

import io
import json
import struct
import sys
import zipfile
import zlib
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.evidence.importers import import_run
from pytest_fusion_audit.evidence.records import Candidate, Claim, Config, ImportedFile, Split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_fusion_audit.evidence.container import Evidence

if sys.version_info >= (3, 14):
    from compression.zstd import compress as zstd
else:
    import zstandard

    zstd = zstandard.ZstdCompressor().compress

RECORDED = Path(__file__).parents[3] / "fixtures" / "other_tools"


def recorded(relative: str) -> Path:
    """A recorded file, as in ``recorded("inspect_ai/0.3.285/tiny_mix.arm_a.json")``."""
    tool, _, rest = relative.partition("/")
    return RECORDED / tool / "recorded" / rest


def load(relative: str) -> Any:
    return json.loads(recorded(relative).read_text(encoding="utf-8"))


def rows(relative: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in recorded(relative).read_text(encoding="utf-8").splitlines()]


def write(path: Path, content: Any) -> Path:
    """Write a document as JSON, a list of objects as JSONL when the name says so, bytes and text as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
    else:
        path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    return path


def file_of(evidence: Evidence, name: str) -> ImportedFile:
    """The import record of the file whose name ends so."""
    return next(file for file in evidence.of(ImportedFile) if file.source.endswith(name))


def codes(evidence: Evidence, name: str) -> dict[str, int]:
    """Notes of a file: code -> count."""
    return {note.code: note.count for note in file_of(evidence, name).notes}


def note(evidence: Evidence, name: str, code: str) -> Any:
    return next(note for note in file_of(evidence, name).notes if note.code == code)


def candidates(evidence: Evidence, **wanted: Any) -> list[Candidate]:
    """Candidates whose fields have these values."""
    return [c for c in evidence.of(Candidate) if all(getattr(c, name) == value for name, value in wanted.items())]


def candidate(evidence: Evidence, **wanted: Any) -> Candidate:
    found = candidates(evidence, **wanted)
    assert len(found) == 1, found
    return found[0]


def claims(evidence: Evidence, **wanted: Any) -> dict[str, Any]:
    """Claims whose fields have these values: quantity -> value."""
    held = [c for c in evidence.of(Claim) if all(getattr(c, name) == value for name, value in wanted.items())]
    return {claim.quantity: claim.value for claim in held}


def run_facts(evidence: Evidence, **wanted: Any) -> dict[str, Any]:
    """Facts of the one run record whose facts have these values."""
    runs = [config.facts for config in evidence.of(Config) if config.what == "run"]
    found = [facts for facts in runs if all(facts.get(name) == value for name, value in wanted.items())]
    assert len(found) == 1, found
    return dict(found[0])


def split(evidence: Evidence) -> Split:
    (only,) = evidence.of(Split)
    return only


# --- inspect_ai ------


def inspect_sample(task: str = "t1", value: Any = "C", **fields: Any) -> dict[str, Any]:
    """A sample that answered and was scored."""
    made = {
        "id": task,
        "epoch": 1,
        "input": f"Question of {task}?",
        "target": "yes",
        "output": {
            "model": "maker/model-a-1",
            "choices": [{"message": {"role": "assistant", "content": "yes"}, "stop_reason": "stop"}],
            "completion": "yes",
        },
        "scores": {"match": {"value": value, "history": []}},
        "metadata": {},
        "model_usage": {"maker/model-a": {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}},
        "total_time": 1.5,
        "uuid": f"u-{task}",
    }
    return {**made, **fields}


def answered(text: str, stop_reason: str | None = "stop") -> dict[str, Any]:
    """The output of a sample."""
    choices = (
        [] if stop_reason is None else [{"message": {"role": "assistant", "content": text}, "stop_reason": stop_reason}]
    )
    return {"model": "maker/model-a-1", "choices": choices, "completion": text}


def inspect_log(*samples: dict[str, Any], spec: Mapping[str, Any] | None = None, **top: Any) -> dict[str, Any]:
    """A log of one task and one model; ``spec`` changes ``eval``, ``top`` the rest."""
    held = list(samples) or [inspect_sample("t1"), inspect_sample("t2", "I")]
    ids = list(dict.fromkeys(sample["id"] for sample in held))
    epochs = max(sample.get("epoch", 1) for sample in held)
    made = {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": "eval-1",
            "run_id": "run-1",
            "created": "2026-01-02T03:04:05+00:00",
            "task": "little",
            "task_id": "task-1",
            "task_version": 0,
            "dataset": {"name": "little_items", "samples": len(ids), "sample_ids": ids},
            "model": "maker/model-a",
            "config": {"epochs": epochs},
            "packages": {"inspect_ai": "0.3.285"},
            "scorers": [{"name": "match"}],
            **(spec or {}),
        },
        "plan": {
            "steps": [{"solver": "generate", "params_passed": {}}],
            "config": {"max_tokens": 64, "temperature": 0.0},
        },
        "samples": held,
    }
    return {**made, **top}


def zip_of(log: Mapping[str, Any], *, method: int = zipfile.ZIP_DEFLATED, header: bool = True) -> bytes:
    """The log as an ``.eval`` archive, packed by deflate (8) or zstd (93)."""
    plain = {key: value for key, value in log.items() if key not in {"samples", "reductions"}}
    start = {key: log[key] for key in ("version", "eval", "plan") if key in log}
    members: list[tuple[str, Any]] = [("_journal/start.json", start)]
    members += [(f"samples/{s['id']}_epoch_{s['epoch']}.json", s) for s in log.get("samples", ())]
    members += [("header.json", plain)] if header else []
    return archive([(name, json.dumps(value).encode()) for name, value in members], method=method)


def archive(members: list[tuple[str, bytes]], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive of these members; names may stand twice."""
    if method != 93:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", method) as made:
            for name, content in members:
                info = zipfile.ZipInfo(name)
                info.compress_type = method
                made.writestr(info, content)
        return out.getvalue()
    local, central = b"", b""
    for name, content in members:
        packed = zstd(content)
        raw, common = (
            name.encode(),
            struct.pack("<HHHHHIII", 63, 0x800, 93, 0, 33, zlib.crc32(content), len(packed), len(content)),
        )
        sizes = struct.pack("<HH", len(raw), 0)
        central += (
            b"PK\x01\x02" + struct.pack("<H", 63) + common + sizes + struct.pack("<HHHII", 0, 0, 0, 0, len(local)) + raw
        )
        local += b"PK\x03\x04" + common + sizes + raw + packed
    end = struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(central), len(local), 0)
    return local + central + b"PK\x05\x06" + end


# --- promptfoo ------


def promptfoo_row(
    test: int, column: int = 0, case: str = "c1", *, success: bool = True, **fields: Any
) -> dict[str, Any]:
    """A row of one column and one test, graded by one assert."""
    made = {
        "id": f"row-{column}-{test}",
        "promptIdx": column,
        "testIdx": test,
        "promptId": "p1" * 32,
        "provider": {"id": f"maker:model-{column}", "label": f"arm_{'ab'[column]}"},
        "prompt": {"raw": f"Answer {case}", "label": "Answer {{q}}"},
        "testCase": {"description": case, "vars": {"q": case}, "assert": [{"type": "equals", "value": "yes"}]},
        "vars": {"q": case},
        "success": success,
        "score": 1 if success else 0,
        "failureReason": 0 if success else 1,
        "gradingResult": {"pass": success, "score": 1, "reason": "r", "componentResults": [{"pass": success}]},
        "response": {
            "output": "yes" if success else "no",
            "finishReason": "stop",
            "tokenUsage": {"prompt": 9, "completion": 2, "total": 11},
            "cost": 0.0001,
        },
        "latencyMs": 1500,
        "cost": 0.0001,
        "tokenUsage": {"prompt": 9, "completion": 2, "total": 11},
    }
    return {**made, **fields}


def promptfoo_file(
    *held: dict[str, Any], repeat: int = 1, config: Mapping[str, Any] | None = None, **top: Any
) -> dict[str, Any]:
    """A JSON export of these rows."""
    columns = sorted({row["promptIdx"] for row in held})
    made = {
        "evalId": "eval-1",
        "results": {
            "version": 3,
            "timestamp": "2026-01-02T03:04:05.000Z",
            "prompts": [{"id": "p1" * 32, "provider": f"arm_{'ab'[column]}"} for column in columns],
            "results": list(held),
        },
        "config": {"description": "little suite", "providers": [], **(config or {})},
        "metadata": {"promptfooVersion": "0.121.20"},
        "runtimeOptions": {"repeat": repeat},
    }
    return {**made, **top}


def copied(value: Any) -> Any:
    return deepcopy(value)


def imported(path: Path, *others: Path) -> Evidence:
    return import_run(path, *others)
