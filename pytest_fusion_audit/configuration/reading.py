"""Read ``fusion.yaml``; whatever is wrong with it is one line that names file, line and field."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

import yaml
from pydantic import ValidationError

from pytest_fusion_audit.configuration.fields import Section, shown
from pytest_fusion_audit.configuration.sections import Configuration
from pytest_fusion_audit.errors import FusionAuditError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic_core import ErrorDetails

DEFAULT_PATH: Final = Path("audits") / "fusion.yaml"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNKNOWN = "extra_forbidden"
S = TypeVar("S", bound=Section)


class ConfigurationError(FusionAuditError):
    """The audit's configuration cannot be used; the message names file, line and field, and repeats no value."""


def load_configuration(path: str | Path | None = None, *, base: str | Path = ".") -> Configuration:
    """Load the configuration of an audit.

    Args:
        path: what ``--fusion-config`` says; None takes ``audits/fusion.yaml`` where it exists, else the defaults.
        base: folder that a relative path starts from.

    Raises:
        ConfigurationError: a named file is missing or unreadable, not UTF-8, not YAML, or a field is wrong.

    >>> load_configuration(base="/nowhere").policy
    'rewrite'
    """
    name = (DEFAULT_PATH if path is None else Path(path)).as_posix()
    text = read_text(Path(base) / name, name, "--fusion-config", optional=path is None)
    return Configuration() if text is None else parse_configuration(text, name)


def read_text(file: Path, name: str, said_by: str, *, optional: bool = False) -> str | None:
    """Text of a file that the user named; None where it is optional and not there.

    Args:
        file: where it is.
        name: how messages call it.
        said_by: option or field that named it.
        optional: whether it may be missing.

    Raises:
        ConfigurationError: missing, unreadable or not UTF-8.
    """
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        if optional:
            return None
        raise ConfigurationError(f"{name}: no such file; correct {said_by}") from None
    except OSError as error:
        raise ConfigurationError(f"{name}: cannot be read ({error.strerror}); correct {said_by}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{name}: not UTF-8 at byte {error.start}; save it as UTF-8") from None


def parse_configuration(text: str, name: str = "fusion.yaml") -> Configuration:
    """Parse the text of a configuration file.

    Args:
        text: YAML; nothing but comments gives the defaults.
        name: how messages call the file.

    Raises:
        ConfigurationError: see `load_configuration`.
    """
    return parse_section(Configuration, text, name)


def parse_section(kind: type[S], text: str, name: str) -> S:
    """Parse a whole document as one section; nothing but comments gives its defaults.

    Raises:
        ConfigurationError: not YAML, a key that stands twice, or a field that is wrong.
    """
    root, document = _read_yaml(text, name)
    for line, key in _twice(root):
        raise ConfigurationError(f"{name}, line {line}: {key} stands there twice; keep one")
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise ConfigurationError(f"{name}, line 1: not a mapping; write one `field: value` a line")
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        raise ConfigurationError(_first_fault(error, root, name, kind)) from None


def _read_yaml(text: str, name: str) -> tuple[yaml.Node | None, Any]:
    loader = _LOADER(text)
    try:
        root = loader.get_single_node()
        return root, None if root is None else loader.construct_document(root)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        column = f" at column {mark.column + 1}" if mark else ""
        raise ConfigurationError(f"{name}{where}: not YAML{column}; check quotes, colons and indentation") from None
    except (ValueError, RecursionError):  # a date such as 2026-13-40, a document that contains itself
        raise ConfigurationError(f"{name}: not YAML that can be read; check dates, anchors and indentation") from None
    finally:
        loader.dispose()


def _twice(root: yaml.Node | None) -> Iterator[tuple[int, str]]:
    """Keys that stand twice in one mapping, with the line of the second; YAML would silently take the last."""
    left = [root] if root is not None else []
    visited: set[int] = set()
    while left:
        node = left.pop()
        if id(node) in visited:
            continue  # an alias: the same node again, in the worst case inside itself
        visited.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            left += node.value
        elif isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                left.append(value)
                if not isinstance(key, yaml.ScalarNode):
                    continue
                if key.value in seen:
                    yield key.start_mark.line + 1, shown(key.value)
                seen.add(key.value)


def _first_fault(error: ValidationError, root: yaml.Node | None, name: str, kind: type[Section]) -> str:
    found = error.errors(include_url=False, include_input=False)
    found.sort(key=lambda fault: fault["type"] != _UNKNOWN)  # a misspelt field is the cause of one that is missing
    faults = [_placed(fault, root, kind) for fault in found]
    path, line, said = faults[0]
    others = len({place for place, _, _ in faults} - {path})
    more = f"; and {others} more" if others else ""
    return f"{name}, line {line}: {_dotted(path)}: {said}{more}"


def _placed(fault: ErrorDetails, root: yaml.Node | None, kind: type[Section]) -> tuple[tuple[str | int, ...], int, str]:
    """Path, line and wording of one fault."""
    if fault["type"] == _UNKNOWN:
        known = _names_beside(fault["loc"], kind)
        near = difflib.get_close_matches(str(fault["loc"][-1]), known, n=1)
        said = f"no such field; did you mean {near[0]}?" if near else f"no such field; known here: {', '.join(known)}"
        return *_locate(root, fault["loc"]), said
    said = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "missing":
        path, line = _locate(root, fault["loc"])
        return (*path, fault["loc"][-1]), line, "is missing"
    named = re.match(r"([a-z_]+(?:\.[a-z_]+)*): ", said)
    if named is None:
        return *_locate(root, fault["loc"]), said
    return *_locate(root, (*fault["loc"], *named[1].split("."))), said.removeprefix(named[0])


def _names_beside(path: Sequence[str | int], section: type[Section]) -> list[str]:
    for step in path[:-1]:
        field = section.model_fields.get(str(step))
        section = (_section_in(field.annotation) if field is not None else None) or section
    return list(section.model_fields)


def _section_in(annotation: Any) -> type[Section] | None:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    return next((found for part in get_args(annotation) if (found := _section_in(part)) is not None), None)


def _locate(root: yaml.Node | None, path: Sequence[str | int]) -> tuple[tuple[str | int, ...], int]:
    """The part of a path that the file holds, and its line. Steps that name a branch of a type are no part of it."""
    node, line, held = root, 1, []
    for step in path:
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == str(step)), None)
            if found is None:
                break
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line + 1
        else:
            break
        held.append(step)
    return tuple(held), line


def _dotted(path: Sequence[str | int]) -> str:
    """A path for people.

    >>> _dotted(("endpoints", "allow", 0, "auth"))
    'endpoints.allow[0].auth'
    """
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{shown(step)}" if text else shown(step)
    return text or "the document"
