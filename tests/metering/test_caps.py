"""Caps of the phases (R2): shares of the total, a reserve for phase 6; what is left rolls on, never above the total."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fusion_audit.configuration import CapsUsd
from pytest_fusion_audit.metering.caps import CAP_OF_PHASE, Caps, CapsError, caps_for, paid_together

USD = 1_000_000


def settings(**caps: float) -> CapsUsd:
    return CapsUsd.model_validate(caps)


def test_the_caps_of_the_procedure() -> None:
    caps = caps_for(500 * USD)
    assert caps.to_json() == {
        "total": 500,
        "reserve": 90,
        "smoke": 15,
        "baseline": 150,
        "composition": 60,
        "ablations": 40,
        "locked": 50,
        "served": 40,
    }
    assert caps.tuning == 410 * USD


def test_another_total_scales_all_of_them() -> None:
    caps = caps_for(1 * USD)
    assert (caps.reserve, caps.smoke, caps.baseline, caps.locked, caps.served) == (
        180_000,
        30_000,
        300_000,
        100_000,
        80_000,
    )
    assert caps_for(7).tuning == 6  # seven millionths of a dollar: nothing rounds up


def test_what_the_file_sets_stays_and_the_rest_scales() -> None:
    caps = caps_for(100 * USD, settings(baseline=50, total=100))
    assert (caps.baseline, caps.smoke, caps.reserve) == (50 * USD, 3 * USD, 18 * USD)
    assert caps_for(5 * USD, settings(baseline=50)).baseline == caps_for(5 * USD).tuning  # never above what there is


def test_a_reserve_of_the_users_own() -> None:
    larger = caps_for(500 * USD, settings(reserve=120))
    assert (larger.tuning, larger.locked, larger.served) == (380 * USD, 50 * USD, 40 * USD)
    smaller = caps_for(500 * USD, settings(reserve=45))
    assert (smaller.locked, smaller.served) == (25 * USD, 20 * USD)
    locked = caps_for(500 * USD, settings(locked=70))
    assert (locked.locked, locked.served) == (70 * USD, 20 * USD)


@pytest.mark.parametrize(
    ("total", "caps", "said"),
    [
        (5, {"reserve": 90}, "caps_usd.reserve of 90.00 USD leaves nothing of 5.00 USD"),
        (90, {"reserve": 90}, "leaves nothing"),
        (500, {"locked": 80, "served": 20}, "locked 80.00 and served 20.00 do not fit into the reserve of 90.00 USD"),
        (500, {"locked": 100}, "do not fit into the reserve"),
    ],
)
def test_caps_that_cannot_hold_are_refused_by_name(total: int, caps: dict[str, float], said: str) -> None:
    with pytest.raises(CapsError, match="nothing was sent") as caught:
        caps_for(total * USD, settings(**caps))
    assert said in str(caught.value)


# --- as a run goes on


def test_phases_0_to_2_share_the_smoke_cap() -> None:
    caps = caps_for(500 * USD)
    assert [caps.phase(phase, {}) for phase in "012"] == [15 * USD] * 3
    assert caps.phase("1", {"0": 2 * USD}) == 15 * USD  # of the three together, as the ledger counts it
    assert [sorted(paid_together(phase)) for phase in ("0", "2", "4")] == [["0", "1", "2"], ["0", "1", "2"], ["4"]]


def test_the_climb_has_what_the_phases_before_it_left() -> None:
    caps = caps_for(500 * USD)
    spent = {"0": 1 * USD, "1": 9 * USD, "3": 100 * USD, "3.composition": 20 * USD, "4": 30 * USD}
    assert caps.phase("5", spent) == 250 * USD
    assert caps.phase("5", spent | {"5": 77 * USD}) == 250 * USD
    assert caps.phase("5", {"3": 500 * USD}) == 0


def test_what_phases_0_to_5_left_goes_to_the_locked_test_first() -> None:
    caps = caps_for(500 * USD)
    spent = {"1": 10 * USD, "3": 150 * USD, "5": 200 * USD}  # 50 of 410 are left
    assert caps.phase("6.1", spent) == 100 * USD
    assert caps.phase("6.2", spent) == 90 * USD
    assert caps.phase("6.2", spent | {"6.1": 30 * USD}) == 90 * USD
    assert caps.phase("6.2", spent | {"6.1": 80 * USD}) == 60 * USD
    assert caps.phase("6.2", spent | {"6.1": 100 * USD}) == 40 * USD
    assert caps.phase("6.1", {"5": 410 * USD}) == 50 * USD


def test_what_of_the_reserve_is_nobodys_goes_there_too() -> None:
    caps = caps_for(500 * USD, settings(reserve=120))
    assert caps.phase("6.1", {"5": 380 * USD}) == 80 * USD
    assert caps.phase("6.2", {"5": 380 * USD, "6.1": 80 * USD}) == 40 * USD


def test_an_unknown_phase_has_no_cap() -> None:
    with pytest.raises(KeyError):
        caps_for(USD).phase("7", {})


def test_limits_are_what_the_ledger_takes() -> None:
    limits = caps_for(500 * USD).limits({"1": 5 * USD})
    assert (limits.total, limits.reserve) == (500 * USD, 90 * USD)
    assert set(limits.phases) == set(CAP_OF_PHASE)
    assert limits.phases["3"] == 150 * USD


chosen = st.dictionaries(
    st.sampled_from(["reserve", "smoke", "baseline", "composition", "ablations", "locked", "served"]),
    st.integers(0, 500),
    max_size=4,
)


@given(total=st.integers(1, 600 * USD), caps=chosen, seed=st.data())
def test_spending_every_cap_to_the_end_never_passes_the_total_nor_touches_the_reserve(
    total: int, caps: dict[str, int], seed: st.DataObject
) -> None:
    try:
        made = caps_for(total, CapsUsd.model_construct(**{**dict.fromkeys(CapsUsd.model_fields), **caps}))
    except CapsError:
        return
    committed: dict[str, int] = {}
    for phase in ("0", "1", "2", "3", "3.composition", "4", "5"):
        room = min(made.phase(phase, committed), made.tuning - sum(committed.values()))
        committed[phase] = seed.draw(st.sampled_from([0, room // 2, room]))
    assert sum(committed.values()) <= made.tuning
    for phase in ("6.1", "6.2"):
        committed[phase] = seed.draw(st.sampled_from([0, made.phase(phase, committed)]))
    assert sum(committed.values()) <= total
    assert committed["6.1"] <= total - made.served
    assert isinstance(made, Caps)
