"""Items that are billed: which they are, whether they may spend (R10), and the door they send through.

An item is billed when it uses the fixture ``door`` or ``budget``, directly or through others. Consent is decided once,
after selection and before the first item runs; everything that can be wrong with hosts, prices and settings is found at
the same moment, and nothing has been sent by then.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest

from pytest_fusion_audit.options import BEFORE_SENDING, settings_of
from pytest_fusion_audit.terms import has_calls, terms_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_fusion_audit.configuration.panel import Panel
    from pytest_fusion_audit.evidence.rundir import RunDirectory
    from pytest_fusion_audit.metering.consent import Granted
    from pytest_fusion_audit.metering.door import Door
    from pytest_fusion_audit.metering.preflight import Preflight
    from pytest_fusion_audit.terms import Terms

MARK: Final = "billed"
_FIXTURES: Final = ("door", "budget")


def is_billed(item: pytest.Item) -> bool:
    """Whether the item may send requests that cost money: it uses our ``door`` or ``budget``."""
    return any(_is_ours(item, name) for name in _FIXTURES)


def _is_ours(item: pytest.Item, name: str) -> bool:
    """Whether the item gets this plugin's fixture of that name: other projects have doors and budgets too."""
    known = getattr(item, "_fixtureinfo", None)  # pytest offers no other way to see what an item's fixtures are
    for definition in reversed(known.name2fixturedefs.get(name, ()) if known is not None else ()):
        if definition.func.__module__ == "pytest_fusion_audit.fixtures":
            return True
        if name not in definition.argnames:
            return False  # it stands in the place of ours, and does not ask for it
    return False


def billed(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The items among all that are billed."""
    return [item for item in items if is_billed(item)]


def mark(items: Iterable[pytest.Item]) -> None:
    """Put the mark ``billed`` on the items that are, so that ``-m "not billed"`` leaves them out."""
    for item in billed(items):
        item.add_marker(MARK)


_SESSION = pytest.StashKey[str]()


def prepare(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Let billed items run, skip or refuse them; begins the run when they may spend.

    Raises:
        FusionAuditError: nobody has agreed to spending; the run, the configuration, a host or a price is refused.
    """
    from pytest_fusion_audit.metering.consent import Skip  # noqa: PLC0415

    names = [item.name for item in items]
    terms = _agreed(config, "selected and billed: " + ", ".join(names[:3]) + (" …" if len(names) > 3 else ""))
    if isinstance(terms.decision, Skip):
        for item in items:
            item.add_marker(pytest.mark.skip(reason=terms.decision.reason))


def _agreed(config: pytest.Config, what: str) -> Terms:
    """The terms of a session that names a run; the run has begun when something may be spent.

    Raises:
        FusionAuditError: as `prepare`.
    """
    from pytest_fusion_audit.errors import EvidenceError  # noqa: PLC0415
    from pytest_fusion_audit.metering.consent import NoConsentError, Refused  # noqa: PLC0415

    if settings_of(config).run_id is None:
        raise EvidenceError(
            "items that are billed need the name of a run: add --fusion-run-id=ID (a name, 'now' or 'latest')"
        )
    terms = terms_of(config)
    if isinstance(terms.decision, Refused):
        raise NoConsentError(f"{terms.decision.message} ({what})")
    settings = settings_of(config)
    idle = [name for name in settings.for_phases if name in BEFORE_SENDING]
    if idle:
        raise EvidenceError(
            f"{', '.join(idle)}: no phase of this version listens, and what is billed would be sent all the same; "
            'nothing was sent. Leave the option out, or the billed items with -m "not billed"'
        )
    if terms.replay and not (settings.base / "audit" / str(settings.run_id) / "calls" / "journal.jsonl").exists():
        raise EvidenceError(f"audit/{settings.run_id} holds no calls to replay; run it live first, or name another run")
    if terms.granted is not None:
        if settings_of(config).imports:
            raise EvidenceError(
                "--fusion-import and billed items exclude each other, an import is a run of its own; nothing was sent. "
                'Leave the billed items out with -m "not billed", or the import'
            )
        _begin(config, terms, terms.granted)
    return terms


def _begin(config: pytest.Config, terms: Terms, granted: Granted) -> None:
    """Write down that the run has begun, or goes on, and with what settings."""
    from pytest_fusion_audit.configuration import resume_differences  # noqa: PLC0415
    from pytest_fusion_audit.metering.owners import check_free  # noqa: PLC0415

    run, checked = _run_and_preflight(config, terms)
    now: dict[str, Any] = {
        **terms.configuration.to_json(),
        "panel_sha256": _digest(terms.panel),
        # A stored answer is found by the URL it came from, among other things: a resume has to ask at the same place.
        "base_urls": {maker: route.url for maker, route in checked.routes.default.items()},
    }

    def compare(stored: Mapping[str, Any]) -> list[dict[str, Any]]:
        found = resume_differences(stored, now)
        found.check()
        return [{"field": each.field, "before": each.before, "after": each.after} for each in found.allowed]

    endpoints = checked.routes.endpoints()
    facts = {
        "mode": "live",
        "journal": True,
        "local": any(endpoint.loopback for endpoint in endpoints),
        "settings": now,
        "cap_micro_usd": granted.cap,
        "consent": granted.by,
        "endpoints": [endpoint.to_json() for endpoint in endpoints],
        "panel_not_read": [] if terms.panel is None else terms.panel.not_read(),
    }
    check_free(run.path / "calls", session_name(config))
    begun = has_calls(run.path)
    run.begin(session_name(config), facts, resume=settings_of(config).resume, begun=begun, compare=compare)


def _run_and_preflight(config: pytest.Config, terms: Terms) -> tuple[RunDirectory, Preflight]:
    from pytest_fusion_audit.evidence.rundir import RunDirectory  # noqa: PLC0415

    settings = settings_of(config)
    if settings.run_id is None or terms.preflight is None:
        raise AssertionError("a session without consent begins no run and opens no door")
    return RunDirectory(settings.base, settings.run_id), terms.preflight


def _digest(panel: Panel | None) -> str | None:
    """Hash of everything in a panel file that can change an answer; prices and patience cannot."""
    if panel is None:
        return None
    apart = {"pricing", "api_key", "api_key_env", "timeout_s"}
    document = panel.model_dump(mode="json", exclude={"endpoints": {"__all__": apart}})
    known = {name: document[name] for name in type(panel).model_fields if name in document}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def session_name(config: pytest.Config) -> str:
    """Name that the controller and all workers of this session share."""
    worker: Mapping[str, Any] | None = getattr(config, "workerinput", None)
    if worker is not None:
        return str(worker["testrunuid"])
    if _SESSION not in config.stash:
        config.stash[_SESSION] = uuid4().hex
    return config.stash[_SESSION]


def open_session_door(config: pytest.Config) -> Door:
    """Open the door of this process.

    Who asks for it in the middle of a test (``request.getfixturevalue``) comes here without `prepare`: consent is asked
    for again.

    Raises:
        FusionAuditError: as `prepare`; another session works on the run; its journal is damaged or (replay) not there.
    """
    from pytest_fusion_audit.evidence.provenance import git_state  # noqa: PLC0415
    from pytest_fusion_audit.metering.caps import caps_for  # noqa: PLC0415
    from pytest_fusion_audit.metering.consent import Skip  # noqa: PLC0415
    from pytest_fusion_audit.metering.door import open_door  # noqa: PLC0415

    terms = _agreed(config, "by an item that asked for the door while it ran")
    if isinstance(terms.decision, Skip):
        pytest.skip(terms.decision.reason)
    run, checked = _run_and_preflight(config, terms)
    # A replay spends nothing: it has the cap that the run had.
    cap = terms.granted.cap if terms.granted is not None else (run.read_run() or {}).get("cap_micro_usd") or 1
    return open_door(
        run.path,
        checked,
        caps_for(cap, terms.configuration.caps_usd),
        session=session_name(config),
        configuration=terms.configuration,
        panel=terms.panel,
        git_sha=git_state(settings_of(config).base)["commit"],
        replay=terms.replay,
    )


def write_spend(config: pytest.Config) -> list[str]:
    """Derive ``spend-ledger.jsonl`` and the phases' evidence from the journal; returns what to tell people.

    Raises:
        EvidenceError: the journal is damaged.
    """
    from pytest_fusion_audit.evidence.money import dollars, usd  # noqa: PLC0415
    from pytest_fusion_audit.metering.spend import phase_records, write_ledger  # noqa: PLC0415

    terms = terms_of(config)
    if terms.granted is None:
        return []
    run, _ = _run_and_preflight(config, terms)
    if not (run.path / "calls" / "journal.jsonl").exists():
        return []
    spend = write_ledger(run.path)
    run.store("phase", phase_records(spend))
    total, cap = spend.total, terms.granted.cap
    apart = f"{usd(total.estimated):.6f} usage unknown, {usd(total.orphaned):.6f} orphans"
    lines = [f" spend     {usd(total.spent):.6f} of {dollars(cap)} USD ({apart}), {total.calls} calls, {run.shown}"]
    if any(call.orphan for call in spend.open):
        lines.append(f"           what was sent and never answered stays charged: fusion-audit spend {run.run_id}")
    if spend.stopped is not None:
        lines.append(f"           stopped: {spend.stopped}; go on with --fusion-resume")
    return lines
