"""What may change when a run is resumed: speed and money. Anything that can change an answer or a verdict may not.

Both sides are compared after defaults, so that a field left out, a null and the default spelled out are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from pytest_fusion_audit.configuration.reading import ConfigurationError
from pytest_fusion_audit.configuration.sections import Configuration

#: Sections that change speed, money or git only.
MAY_CHANGE: Final = frozenset({"caps_usd", "spend", "prefer", "concurrency", "git"})
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that is not as it was; None where it is absent."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class ResumeDifferences:
    """What differs between a stored run and its resume.

    Attributes:
        refused: changes that make it another experiment, by field.
        allowed: changes of speed and money, to be written to the run's log.
    """

    refused: tuple[FieldChange, ...]
    allowed: tuple[FieldChange, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields that must not have changed; empty when the run may go on."""
        return tuple(change.field for change in self.refused)

    def check(self) -> None:
        """Return when the run may go on.

        Raises:
            ConfigurationError: it is another experiment; lists the fields.
        """
        if self.refused:
            raise ConfigurationError(
                f"this run was begun with other settings: {', '.join(self.fields)}; nothing was sent. "
                "Put them back, or begin a new run with another --fusion-run-id"
            )


def resume_differences(
    stored: Mapping[str, Any] | Configuration, now: Mapping[str, Any] | Configuration
) -> ResumeDifferences:
    """Compare what a run was begun with to what it is resumed with.

    Args:
        stored: settings of ``run.json``: fields of a `Configuration`, and any further facts beside them (hashes of
            prompts, of the panel, of datasets).
        now: the same of this session.

    Raises:
        ConfigurationError: a side cannot be read as a configuration; names side and field.

    >>> resume_differences({"policy": "rewrite", "prompts_sha256": "a"}, {"prompts_sha256": "b"}).fields
    ('prompts_sha256',)
    """
    before, after = _flat(stored, "the stored settings"), _flat(now, "the settings of this session")
    changes = [
        FieldChange(field, before.get(field), after.get(field))
        for field in sorted(before.keys() | after.keys())
        if not _same(before.get(field, _ABSENT), after.get(field, _ABSENT))
    ]
    free = {change.field for change in changes if change.field.split(".", 1)[0] in MAY_CHANGE}
    return ResumeDifferences(
        refused=tuple(change for change in changes if change.field not in free),
        allowed=tuple(change for change in changes if change.field in free),
    )


def _flat(settings: Mapping[str, Any] | Configuration, whose: str) -> dict[str, Any]:
    """Leaves by dotted name: configuration after defaults, other facts as they are; nulls are absent."""
    if isinstance(settings, Configuration):
        configuration, facts = settings, {}
    else:
        known = Configuration.model_fields.keys()
        facts = {name: value for name, value in settings.items() if name not in known}
        try:
            configuration = Configuration.model_validate({name: settings[name] for name in settings if name in known})
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(step) for step in fault["loc"]) or "settings"
            raise ConfigurationError(f"{whose}: {where}: {fault['msg']}") from None
    leaves: dict[str, Any] = {}
    _collect({**configuration.to_json(), **facts}, "", leaves)
    return leaves


def _collect(value: Any, name: str, leaves: dict[str, Any]) -> None:
    if isinstance(value, Mapping):
        for key, entry in value.items():
            _collect(entry, f"{name}.{key}" if name else str(key), leaves)
    elif value is not None:
        leaves[name] = value


def _same(before: Any, after: Any) -> bool:
    if isinstance(before, bool) or isinstance(after, bool):
        return before is after
    return bool(before == after)
