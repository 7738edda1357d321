"""What a call is for: phase, arm, stage, task and which of several draws. Part of the key of a stored answer."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_fusion_audit.errors import FusionAuditError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Our own clients say the scope in this header; it is taken off before anything leaves the machine.
HEADER = "x-fusion-scope"


class ScopeError(FusionAuditError):
    """A scope header that was not written by this tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What one call is for.

    Attributes:
        phase: ``"0"`` … ``"6.2"``: whose money it is.
        arm: the arm the call belongs to, ``compound``, ``member:gpt``, ``drill:…``.
        stage: ``panel``, ``judge``, ``synthesizer``, ``proposer`` or ``unknown``.
        task: task id, None where it is not known.
        turn: turn (task x arm) whose admission pays for the call, None outside of turns.
        replicate: index of the seed.
        sample: index of the draw of one member.
        occurrence: number of the same request within the same scope, counted by whoever sends; None: the door counts.
        detail: whatever else can change the answer and does not stand in the request (policy, truncation, prompt hash).
        reuse: False never takes a stored answer (drills).
    """

    phase: str
    arm: str = "unknown"
    stage: str = "unknown"
    task: str | None = None
    turn: str | None = None
    replicate: int = 0
    sample: int = 0
    occurrence: int | None = None
    detail: str = ""
    reuse: bool = True

    def header(self) -> str:
        """The scope as a header value; `from_header` reads it back."""
        return base64.urlsafe_b64encode(json.dumps(self.stated(), separators=(",", ":")).encode()).decode()

    def stated(self) -> dict[str, Any]:
        """What differs from the defaults, for the header and for the journal."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name)) != _DEFAULTS.get(name, ...)}

    @classmethod
    def from_header(cls, value: str) -> Scope:
        """Read a scope back.

        Raises:
            ScopeError: the value is not one that `header` made.

        >>> Scope.from_header(Scope(phase="3", task="HumanEval/0", sample=2).header()).sample
        2
        """
        try:
            fields = json.loads(base64.urlsafe_b64decode(value.encode("ascii")))
            return cls(**fields)
        except (ValueError, TypeError, binascii.Error, UnicodeError):
            raise ScopeError(f"the header {HEADER} was not written by this tool; leave it out") from None

    def keyed(self) -> Mapping[str, Any]:
        """The part of the scope that belongs to the key: who asks for what, and not who pays or when."""
        return {
            "phase": self.phase,
            "arm": self.arm,
            "stage": self.stage,
            "task": self.task,
            "replicate": self.replicate,
            "sample": self.sample,
            "occurrence": self.occurrence,
            "detail": self.detail,
        }


_DEFAULTS: dict[str, Any] = {
    "arm": "unknown",
    "stage": "unknown",
    "task": None,
    "turn": None,
    "replicate": 0,
    "sample": 0,
    "occurrence": None,
    "detail": "",
    "reuse": True,
}
