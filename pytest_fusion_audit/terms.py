"""On what terms a session may spend: consent, configuration, panel, and where calls would go. Read once per process.

Nothing is sent and nothing is created here; everything that can be wrong with it is one line.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pytest

from pytest_fusion_audit.errors import FusionAuditError
from pytest_fusion_audit.options import settings_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_fusion_audit.configuration import Configuration
    from pytest_fusion_audit.configuration.panel import Panel
    from pytest_fusion_audit.metering.consent import Granted, Refused, Skip
    from pytest_fusion_audit.metering.preflight import Preflight
    from pytest_fusion_audit.options import Settings

#: Name under which the session's `key_guard.KeyGuard` is registered.
KEY_GUARD: Final = "fusion-audit-key-guard"


@dataclass
class Terms:
    """On what terms a session may spend.

    Attributes:
        decision: granted, skipped with a reason, or refused.
        configuration: ``fusion.yaml`` after defaults and options.
        panel: the panel file, None where there is none.
        preflight: where calls go; None unless granted, or in a replay.
        replay: answers come from the store.
        warnings: what has to be said before anything is spent.
    """

    decision: Granted | Skip | Refused
    configuration: Configuration
    panel: Panel | None
    preflight: Preflight | None = None
    replay: bool = False
    warnings: Sequence[str] = field(default_factory=tuple)

    @property
    def granted(self) -> Granted | None:
        """The consent; None where nothing may be spent, and in a replay."""
        from pytest_fusion_audit.metering.consent import Granted  # noqa: PLC0415

        return self.decision if isinstance(self.decision, Granted) and not self.replay else None

    def lines(self) -> list[str]:
        """What the header of a session that may spend says; none where nothing can be spent."""
        from pytest_fusion_audit.evidence.money import dollars  # noqa: PLC0415

        if self.preflight is None or self.granted is None:
            return []
        note = f" · {self.granted.note}" if self.granted.note else ""
        cap = f"{dollars(self.granted.cap)} USD over the run and its resumes"
        first = f"live: what is billed may spend up to {cap}, by {self.granted.by}{note}"
        return [first, *self.preflight.lines(), *self.warnings]


_TERMS = pytest.StashKey[Terms]()


def may_spend(config: pytest.Config) -> bool:
    """Whether anybody could have agreed to spending; cheap, and True only where `terms_of` is worth its imports."""
    settings = settings_of(config)
    said = settings.budget is not None or settings.config is not None
    return settings.run_id is not None and (said or (settings.base / "audits" / "fusion.yaml").exists())


def terms_of(config: pytest.Config) -> Terms:
    """Decide once per process on what terms this session may spend; sends nothing and creates nothing.

    Raises:
        FusionAuditError: configuration, panel file, a host or a price is refused.
    """
    held = config.stash.get(_TERMS, None)
    if held is None:
        held = config.stash[_TERMS] = _terms(config)
        guard = config.pluginmanager.get_plugin(KEY_GUARD)
        if guard is not None and held.preflight is not None:
            guard.learn(held.preflight.keys.scrubber)
    return held


def _terms(config: pytest.Config) -> Terms:
    from pytest_fusion_audit.configuration import load_configuration  # noqa: PLC0415
    from pytest_fusion_audit.metering.consent import Granted, Refused, decide  # noqa: PLC0415
    from pytest_fusion_audit.metering.models import temperature_warnings  # noqa: PLC0415
    from pytest_fusion_audit.metering.preflight import preflight  # noqa: PLC0415

    settings = settings_of(config)
    if settings.config is not None:
        configuration = load_configuration(settings.config, base=config.invocation_params.dir)
    else:
        configuration = load_configuration(base=settings.base)
    panel, panel_name = _panel(config, configuration)
    if settings.mode == "offline":
        refused = Refused("--fusion-mode=offline needs scripted models, which this version does not have; nothing ran")
        return Terms(refused, configuration, panel)
    if settings.mode == "replay":
        stored = preflight(configuration, panel, _stored_urls(settings), panel_name=panel_name)
        return Terms(Granted(0, "replay"), configuration, panel, stored, replay=True)
    checked: Preflight | None = None
    fault: FusionAuditError | None = None
    try:
        checked = preflight(configuration, panel, os.environ, panel_name=panel_name)
    except FusionAuditError as error:
        fault = error  # told where something would be sent; a session that only skips needs none of it
    run_id = settings.run_id
    decision = decide(
        budget_option=None if settings.budget is None else str(settings.budget),
        spend_option=settings.spend,
        spend=configuration.spend,
        caps=configuration.caps_usd,
        environ=os.environ,
        spent_by_other_runs=_spent(settings.base, but=run_id) if configuration.spend.total_usd is not None else 0,
        spent_by_this_run=spent_by(settings.base / "audit" / run_id) if run_id else 0,
        missing=() if checked is None else checked.missing(),
    )
    terms = Terms(decision, configuration, panel)
    if isinstance(decision, Granted):
        if checked is None:
            raise fault or AssertionError("no preflight and no reason")
        checked.check_keys()
        terms.preflight = checked
        asked = [(route.provider, route.model) for route in checked.routes.by_id.values() if route.model]
        warned = temperature_warnings(asked, configuration.samples.temperatures, checked.overrides)
        terms.warnings = [f"note {text}" for text in warned.values()]
    return terms


def _stored_urls(settings: Settings) -> dict[str, str]:
    """The makers' base URLs with which a run was made, as the environment would say them."""
    from pytest_fusion_audit.evidence.rundir import RunDirectory  # noqa: PLC0415
    from pytest_fusion_audit.metering.hosts import BASE_URL_VARIABLES  # noqa: PLC0415

    run = None if settings.run_id is None else RunDirectory(settings.base, settings.run_id).read_run()
    urls = None if run is None else run["settings"].get("base_urls")
    if not isinstance(urls, dict):
        return {}
    return {variable: str(urls[maker]) for variable, maker in BASE_URL_VARIABLES.items() if maker in urls}


def _panel(config: pytest.Config, configuration: Configuration) -> tuple[Panel | None, str]:
    """The panel file that was named, or the default one where it is there."""
    from pytest_fusion_audit.configuration.panel import load_panel  # noqa: PLC0415

    settings = settings_of(config)
    if settings.panel is not None:
        return load_panel(settings.panel, base=config.invocation_params.dir), settings.panel
    default = type(configuration)().panel
    named = configuration.panel
    if named == default and not (settings.base / named).exists():
        return None, named
    return load_panel(named, base=settings.base, said_by="panel in audits/fusion.yaml"), named


def _spent(base: Path, *, but: str | None) -> int:
    """Micro-dollars that count as spent in the other runs of this repository; of one that is at work, its whole cap."""
    from pytest_fusion_audit.evidence.rundir import RunDirectory  # noqa: PLC0415
    from pytest_fusion_audit.metering.owners import at_work  # noqa: PLC0415

    total = 0
    for path in sorted((base / "audit").glob("*/calls/journal.jsonl")):
        run = path.parent.parent
        if run.name != but:
            cap = (RunDirectory(base, run.name).read_run() or {}).get("cap_micro_usd") if at_work(path.parent) else None
            total += max(spent_by(run), cap if isinstance(cap, int) else 0)
    return total


def has_calls(run: Path) -> bool:
    """Whether a call of the run was ever sent, whatever it cost."""
    from pytest_fusion_audit.metering.spend import spend_of  # noqa: PLC0415

    return (run / "calls" / "journal.jsonl").exists() and spend_of(run).total.calls > 0


def spent_by(run: Path) -> int:
    """Micro-dollars that are spent or reserved in a run; 0 where it has no call."""
    from pytest_fusion_audit.metering.spend import spend_of  # noqa: PLC0415

    if not (run / "calls" / "journal.jsonl").exists():
        return 0
    return spend_of(run).total.committed
