"""What an uplift over the members is worth beside the control: one model's own samples for the same money."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fusion_audit.analysis.validity.control import controls_of
from pytest_fusion_audit.analysis.validity.pairs import with_p
from pytest_fusion_audit.rubric.evaluations import figures

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pytest_fusion_audit.analysis.validity.control import Control
    from pytest_fusion_audit.evidence.container import Evidence
    from pytest_fusion_audit.rubric.evaluations import Evaluation


def strongest_control(evidence: Evidence, evaluation: Evaluation) -> Control | None:
    """The control at equal dollars that the compound does worst against, whichever model it is of; None without."""
    found = [
        control
        for control in controls_of(evidence, evaluation.ref)
        if control.equal_dollars and control.scored and control.comparison.uplift is not None
    ]
    return min(found, key=lambda control: (control.comparison.uplift or 0.0, control.comparison.second), default=None)


def beside_control(evidence: Evidence, evaluation: Evaluation) -> tuple[dict[str, JsonValue], tuple[str, ...]]:
    """Figures of the compound against the strongest control, and the sentence where it is not shown to be worse.

    The rubric's 1.1 to 1.3 ask for the members only, 2.5 asks for the control: the sentence takes no point, it stands
    wherever the uplift does.
    """
    control = strongest_control(evidence, evaluation)
    if control is None:
        return {}, ()
    comparison = control.comparison
    shown: dict[str, JsonValue] = {
        **figures(comparison),
        "over": comparison.second.arm,
        "of": control.called,
        "of_best_single": control.of_best_single,
    }
    if comparison.shows_uplift:
        return {"equal_dollars": shown}, ()
    worse = (comparison.uplift or 0.0) <= 0
    says = "does no worse than the compound" if worse else "is not shown to be worse than the compound"
    who = "" if control.of_best_single else f" (of {control.called}, not of the best single)"
    reason = f"at equal dollars {comparison.second.arm}{who} {says}: {with_p(comparison)}"
    return {"equal_dollars": shown}, (reason,)
