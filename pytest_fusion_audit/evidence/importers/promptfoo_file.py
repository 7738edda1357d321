"""A promptfoo results file: the JSON export with its header, or the JSONL export of rows without one.

The header may hold keys, addresses and absolute paths: only what is named here is taken from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pytest_fusion_audit.evidence.importers.answers import content_sha256
from pytest_fusion_audit.evidence.importers.base import Source, refusal
from pytest_fusion_audit.evidence.importers.rows import Row, whole_characters
from pytest_fusion_audit.evidence.importers.text import load_json, load_jsonl

if TYPE_CHECKING:
    from pydantic import JsonValue

_VERSION: Final = 3
#: Parameters of a provider that are kept, under our name for them. Nothing else of its configuration is.
_PARAMETERS: Final = {
    "max_tokens": "max_tokens", "maxTokens": "max_tokens", "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens", "maxOutputTokens": "max_tokens", "temperature": "temperature",
    "top_p": "top_p", "topP": "top_p", "top_k": "top_k", "seed": "seed", "reasoning_effort": "reasoning_effort",
    "frequency_penalty": "frequency_penalty", "presence_penalty": "presence_penalty",
}  # fmt: skip
_PRIVATE: Final = re.compile(r"key|token$|secret|password|header|url|host|path|organi[sz]ation", re.IGNORECASE)
_SCRIPT: Final = re.compile(r"(?P<scheme>file|python|javascript|golang|ruby|package|exec|https?|wss?|webhook|browser):")
_SEPARATORS: Final = re.compile(r"[/\\:]")
_OPAQUE: Final = {"exec", "http", "https", "ws", "wss", "webhook", "browser"}  # what follows may hold keys or addresses


@dataclass(slots=True)
class Arm:
    """One column of the results: a provider under a prompt.

    Attributes:
        name: label of the provider, else its id.
        config: what tells it from other columns of the same name; None when there is no other.
        settings: digest of prompt and provider settings, the seed excepted.
        stated: the file's own figures about it.
    """

    index: int
    provider: str
    name: str
    prompt: str | None = None
    config: str | None = None
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)
    settings: str = ""
    stated: Row | None = None


@dataclass(slots=True)
class ResultsFile:
    """One export.

    Attributes:
        rows: in file order, which is not sorted.
        repeat: answers asked for per case; None when the file does not tell (JSONL).
        run_id: id of the evaluation, None in JSONL.
    """

    source: Source
    rows: list[Row]
    arms: dict[int, Arm]
    run_id: str | None = None
    started: str = ""
    version: str | None = None
    description: str | None = None
    repeat: int | None = None
    cached: bool | None = None
    stats: Row | None = None
    unread: list[str] = field(default_factory=list)


def read_file(source: Source) -> ResultsFile:
    """Read an export of either form.

    Raises:
        ImportRefusedError: damaged, or of a layout that is not known; names the field.
    """
    pairs = list(load_jsonl(source)) if _is_jsonl(source) else []
    if pairs:
        rows = [Row(source, f"line {number}", data) for number, data in pairs]
        return ResultsFile(source, rows, _arms(rows, None, None))
    top = Row(source, "", load_json(source))
    if "promptIdx" in top.data:  # JSONL of one row
        return ResultsFile(source, [top], _arms([top], None, None))
    results = top.child("results")
    if results is None:
        raise top.refuse("results", "an object")
    version = results.count("version")
    if version != _VERSION:
        then = "export it again with a promptfoo of 2025 or later"
        raise refusal(source, f"layout {version} is not known, {_VERSION} is", "field results.version", then=then)
    config, options, about = top.child("config"), top.child("runtimeOptions"), top.child("metadata")
    rows = results.rows("results")
    return ResultsFile(
        source,
        rows,
        _arms(rows, results, config),
        run_id=top.text("evalId"),
        started=results.text("timestamp") or "",
        version=about.text("promptfooVersion") if about is not None else None,
        description=config.text("description") if config is not None else None,
        repeat=(options.count("repeat") if options is not None else None) or 1,
        cached=options.flag("cache") if options is not None else None,
        stats=results.child("stats"),
        unread=[
            *top.others(
                {"evalId", "results", "config", "shareableUrl", "metadata", "vars", "runtimeOptions", "traces"}
            ),
            *(f"results.{name}" for name in results.others({"version", "timestamp", "prompts", "results", "stats"})),
        ],
    )


def _is_jsonl(source: Source) -> bool:
    """Whether a second line begins an object, as it never does in a document."""
    with source.path.open("rb") as file:
        first = file.readline().strip()
        return first.endswith(b"}") and file.readline().lstrip().startswith(b"{")


def _arms(rows: list[Row], results: Row | None, config: Row | None) -> dict[int, Arm]:
    """Columns by index, from the list of prompts and from the rows themselves."""
    arms: dict[int, Arm] = {}
    for row in rows:
        index = _column(row)
        provider, label = _provider(row)
        arm = Arm(index, shown_provider(provider), label or shown_provider(provider), row.text("promptId"))
        known = arms.setdefault(index, arm)
        if (known.name, known.prompt) != (arm.name, arm.prompt):
            differs = "provider" if known.name != arm.name else "promptId"
            raise row.refuse(differs, f"what column {index} has in the rows before")
    for index, prompt in enumerate(results.rows("prompts") if results is not None else []):
        stated = prompt.text("provider") or f"column {index}"
        arm = arms.setdefault(index, Arm(index, shown_provider(stated), shown_provider(stated), prompt.text("id")))
        arm.stated = prompt
    arms = dict(sorted(arms.items()))
    for arm in arms.values():
        given = _settings_of(arm, config)
        arm.parameters = {
            ours: whole_characters(value) if isinstance(value, str) else value
            for theirs, ours in _PARAMETERS.items()
            if isinstance(value := given.get(theirs), (int, float, str)) and not isinstance(value, bool)
        }
        plain = {name: value for name, value in given.items() if name != "seed" and not _PRIVATE.search(name)}
        arm.settings = content_sha256([arm.prompt, plain])
    _tell_apart(list(arms.values()))
    return arms


def _tell_apart(arms: list[Arm]) -> None:
    """Columns of one name differ by their prompt; if not by that, by their place."""
    for arm in arms:
        alike = [other for other in arms if other.name == arm.name]
        if len(alike) > 1:
            prompts = {other.prompt for other in alike}
            by_prompt = len(prompts) == len(alike) and None not in prompts
            arm.config = f"prompt-{(arm.prompt or '')[:8]}" if by_prompt else f"column-{arm.index}"


def _column(row: Row) -> int:
    index = row.count("promptIdx")
    if index is None:
        raise row.refuse("promptIdx", "the number of a column")
    return index


def _provider(row: Row) -> tuple[str, str | None]:
    value = row.data.get("provider")
    if isinstance(value, str) and value.strip():
        return value, None
    provider = row.child("provider")
    name = provider.text("id") if provider is not None else None
    if provider is None or name is None:
        raise row.refuse("provider", "a provider with an id")
    return name, provider.text("label")


def shown_provider(provider: str) -> str:
    """A provider's id without what is private in it: paths, commands, addresses.

    >>> shown_provider("openai:gpt-x"), shown_provider("file:///home/me/provider.js")
    ('openai:gpt-x', 'file:provider.js')
    >>> shown_provider("https://10.0.0.1/v1?key=s3cret")
    'https'
    """
    match = _SCRIPT.match(provider)
    if match is None:
        return provider
    scheme = match.group("scheme")
    return scheme if scheme in _OPAQUE else f"{scheme}:{_SEPARATORS.split(provider)[-1]}"


def _settings_of(arm: Arm, config: Row | None) -> dict[str, Any]:
    """What the configuration sets for a column's provider: by label, else by id; empty when it does not tell."""
    providers = config.data.get("providers") if config is not None else None
    for entry in providers if isinstance(providers, list) else []:
        if isinstance(entry, Mapping):
            own = entry.get("label") or shown_provider(str(entry.get("id")))
            given = entry.get("config")
            if own == arm.name:
                settings = dict(given) if isinstance(given, Mapping) else {}
                return {**settings, "transform": entry.get("transform")} if entry.get("transform") else settings
    return {}
