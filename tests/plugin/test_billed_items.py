"""Items that are billed, in real sessions against a real loopback server that counts what it was asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fusion_audit.cli import main
from pytest_fusion_audit.metering.calls import Calls
from pytest_fusion_audit.metering.limits import Limits
from pytest_fusion_audit.metering.spend import spend_of
from tests.metering.servers import Reply, running_server
from tests.plugin.conftest import REPO, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.metering.servers import Server

OPENAI_KEY, ANTHROPIC_KEY = "sk-proj-REALKEYofOPENAI0123456789", "sk-ant-api03-REALKEYofANTHROPIC0123456789"
GRANTED = ("--fusion-run-id=r", "--fusion-budget=5")

SMOKE = """
from pytest_fusion_audit.metering.clients import Prompt


def test_members_answer(door, budget):
    smoke = budget.phase("1", suite="pocket", tasks=2, est=3_000)

    async def work(opened):
        answers = []
        for task in ("a", "b"):
            for endpoint, model in (("openai", "gpt-5.5"), ("anthropic", "claude-opus-4-8")):
                scope = smoke.scope(arm=f"member:{endpoint}", stage="panel", task=task)
                answers.append(
                    await opened.complete(
                        endpoint, Prompt(text=f"task {task}"), scope, model=model, asked={"max_output_tokens": 50}
                    )
                )
        return answers

    answers = door.run(work)
    assert [answer.facts.outcome for answer in answers] == ["answered"] * 4
    assert budget.cap == 5_000_000 and budget.reserved == 0
    assert budget.spent == smoke.spent == sum(round(row["measured_usd"] * 1e6) for row in budget.ledger()) > 0
    assert budget.left("1") == smoke.left == smoke.cap - smoke.spent
"""


@pytest.fixture
def server() -> Iterator[Server]:
    with running_server() as running:
        yield running


@pytest.fixture
def billed(project: pytest.Pytester, server: Server, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """The project with a billed item, both keys set, and both makers' base URLs pointing at the counting server."""
    monkeypatch.setenv("OPENAI_API_KEY", OPENAI_KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", ANTHROPIC_KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    monkeypatch.delenv("CI", raising=False)
    (project.path / "audits" / "test_smoke.py").write_text(SMOKE)
    return project


def stored(project: pytest.Pytester, name: str) -> Any:
    return json.loads((project.path / "audit" / "r" / name).read_text())


# -- consent (R10)

WITHOUT_CONSENT = {
    "bare": (),
    "audits": ("audits/",),
    "one criterion": ("audits", "-k", "1.1"),
    "last failed": ("audits", "--lf"),
    "node id": ("audits/test_smoke.py::test_members_answer",),
    "gate": ("audits", "-m", "gate_a"),
    "replay": ("audits", "-m", "replay"),
    "collect only": ("audits", "--collect-only"),
    "fixtures": ("audits", "--fixtures"),
    "setup plan": ("audits", "--setup-plan"),
}


NAMED = ("--fusion-run-id=r", "--fusion-import=recorded")
CHOOSE_BILLED = {"bare", "audits", "last failed", "node id"}
SHUT = {"gate"}  # an import opens no gate


def check_nothing_sent(billed: pytest.Pytester, server: Server, result: pytest.RunResult) -> str:
    assert server.rows == []
    assert not (billed.path / "audit" / "r" / "calls").exists()
    said = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize("name", WITHOUT_CONSENT)
def test_without_consent_nothing_is_sent(billed: pytest.Pytester, server: Server, name: str) -> None:
    result = run(billed, *WITHOUT_CONSENT[name], *NAMED)
    said = check_nothing_sent(billed, server, result)
    if name in CHOOSE_BILLED:
        assert result.ret == 4
        assert "nobody has agreed to it; nothing was sent. Add --fusion-budget=USD" in said
        assert "test_members_answer" in said
    else:
        assert result.ret == (1 if name in SHUT else 0)


@pytest.mark.parametrize("name", ["bare", "node id", "one criterion", "collect only"])
def test_without_a_run_nothing_is_sent(billed: pytest.Pytester, server: Server, name: str) -> None:
    result = run(billed, *WITHOUT_CONSENT[name])
    said = check_nothing_sent(billed, server, result)
    assert (result.ret, "--fusion-run-id" in said) == ((0, False) if name == "collect only" else (4, True))


@pytest.mark.parametrize("name", ["bare", pytest.param("replay", marks=pytest.mark.deep)])
def test_two_workers_send_nothing_without_consent_either(billed: pytest.Pytester, server: Server, name: str) -> None:
    result = run(billed, *WITHOUT_CONSENT[name], *NAMED, "-n2")
    check_nothing_sent(billed, server, result)
    assert result.ret == (4 if name == "bare" else 0)


def test_with_consent_the_same_server_counts(billed: pytest.Pytester, server: Server) -> None:
    result = run(billed, "audits/test_smoke.py", *GRANTED)
    result.assert_outcomes(passed=1)
    assert len(server.billed()) == 4
    result.stdout.fnmatch_lines(
        [
            "fusion-audit * · run r · live: what is billed may spend up to 5.00 USD *, by --fusion-budget*",
            "endpoint 127.0.0.1:* · loopback · placeholder key",
            "run local · *not claim-eligible*",
            " spend * of 5.00 USD (0.000000 usage unknown, 0.000000 orphans), 4 calls, audit/r",
        ]
    )
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer placeholder"}


@pytest.mark.parametrize("environment", ["CI", "option"])
def test_never_skips_and_says_why(
    billed: pytest.Pytester, server: Server, monkeypatch: pytest.MonkeyPatch, environment: str
) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name)
    options = [*GRANTED, "-rs"]
    if environment == "CI":
        monkeypatch.setenv("CI", "true")
    else:
        options.append("--fusion-spend=never")
    result = run(billed, "audits/test_smoke.py", *options)
    result.assert_outcomes(skipped=1)
    assert (result.ret, server.rows) == (0, [])
    result.stdout.fnmatch_lines(["*--fusion-spend=never*ANTHROPIC_API_KEY is not set*"])
    assert not (billed.path / "audit").exists()


def test_auto_spends_under_ci_when_asked_to(
    billed: pytest.Pytester, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    run(billed, "audits/test_smoke.py", *GRANTED, "--fusion-spend=auto").assert_outcomes(passed=1)
    assert len(server.billed()) == 4


def test_consent_may_stand_in_the_file(billed: pytest.Pytester, server: Server) -> None:
    (billed.path / "audits" / "fusion.yaml").write_text("spend: {consent: true, budget_usd: 5}\n")
    result = run(billed, "audits/test_smoke.py", "--fusion-run-id=r")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*by spend in fusion.yaml*"])
    assert len(server.billed()) == 4


def test_offline_waits_for_its_models(billed: pytest.Pytester, server: Server) -> None:
    result = run(billed, "audits/test_smoke.py", *GRANTED, "--fusion-mode=offline")
    assert (result.ret, server.rows) == (4, [])


# -- hosts

PANEL = """
endpoints:
  - {{id: gpt, provider: openai, model: gpt-5.5, base_url: "{url}", api_key_env: OPENAI_API_KEY}}
  - {{id: opus, provider: anthropic, model: claude-opus-4-8}}
panel_models: [gpt, opus]
"""


@pytest.mark.parametrize("where", ["panel option", "panel in the file", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"])
def test_an_unlisted_host_gets_no_key_and_no_request(
    billed: pytest.Pytester, server: Server, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    options = list(GRANTED)
    if where.endswith("URL"):
        monkeypatch.setenv(where, "https://collector.example/v1")
    else:
        (billed.path / "panel.yaml").write_text(PANEL.format(url="https://collector.example"))
        if where == "panel option":
            options.append("--fusion-panel=panel.yaml")
        else:
            (billed.path / "audits" / "fusion.yaml").write_text("panel: panel.yaml\n")
    result = run(billed, "audits/test_smoke.py", *options)
    assert (result.ret, server.rows) == (4, [])
    said = result.stdout.str() + result.stderr.str()
    assert "collector.example is not a host that a key or a prompt may go to" in said
    assert ("base_url of gpt in panel.yaml" if "panel" in where else f"{where} in the environment") in said
    assert not (billed.path / "audit").exists()


@pytest.mark.parametrize(("field", "value"), [("provider", "mistral"), ("model", "mistral-large")])
def test_a_panel_of_another_maker_is_refused_by_field(
    billed: pytest.Pytester, server: Server, field: str, value: str
) -> None:
    panel = PANEL.format(url=server.url).replace({"provider": "openai,", "model": "gpt-5.5"}[field], value, 1)
    (billed.path / "panel.yaml").write_text(panel.replace("mistral model", "mistral, model"))
    result = run(billed, "audits/test_smoke.py", *GRANTED, "--fusion-panel=panel.yaml")
    assert (result.ret, server.rows) == (4, [])
    assert field in result.stdout.str() + result.stderr.str()


# -- the ledger and the run directory


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_the_ledger_equals_the_servers_bill(billed: pytest.Pytester, server: Server, workers: str) -> None:
    result = run(billed, "audits/test_smoke.py", *GRANTED, workers)
    result.assert_outcomes(passed=1)
    [line] = (billed.path / "audit" / "r" / "spend-ledger.jsonl").read_text().splitlines()
    row = json.loads(line)
    # 10 or 17 tokens in, 20 out: 5 and 30 dollars per million for gpt-5.5, 5 and 25 for the other.
    assert (row["phase"], row["suite"], row["tasks"], row["est_usd"]) == ("1", "pocket", 2, 0.003)
    assert row["measured_usd"] == row["cum_usd"] > 0
    assert len(server.billed()) == 4
    facts = stored(billed, "run.json")
    assert (facts["mode"], facts["local"], facts["cap_micro_usd"], len(facts["sessions"])) == (
        "live",
        True,
        5_000_000,
        1,
    )
    assert [each["host"] for each in facts["endpoints"]] == [server.url.removeprefix("http://")]
    shown = run(billed, "audits", "-m", "replay", "--fusion-run-id=r")
    shown.stdout.fnmatch_lines([" spend     $0.00 *"])
    assert stored(billed, "scorecard.json")["spend"]["spent_usd"] == row["measured_usd"]
    assert len(server.billed()) == 4


def test_another_session_goes_on_only_when_asked_and_pays_nothing_twice(
    billed: pytest.Pytester, server: Server
) -> None:
    run(billed, "audits/test_smoke.py", *GRANTED).assert_outcomes(passed=1)
    refused = run(billed, "audits/test_smoke.py", *GRANTED)
    assert refused.ret == 4
    assert "add --fusion-resume" in refused.stdout.str() + refused.stderr.str()
    before = (billed.path / "audit" / "r" / "spend-ledger.jsonl").read_bytes()
    run(billed, "audits/test_smoke.py", *GRANTED, "--fusion-resume").assert_outcomes(passed=1)
    assert len(server.billed()) == 4
    assert (billed.path / "audit" / "r" / "spend-ledger.jsonl").read_bytes() == before
    assert len(stored(billed, "run.json")["sessions"]) == 2


def test_a_resume_with_other_settings_is_refused_and_speed_is_not(billed: pytest.Pytester, server: Server) -> None:
    run(billed, "audits/test_smoke.py", *GRANTED).assert_outcomes(passed=1)
    file = billed.path / "audits" / "fusion.yaml"
    file.write_text("policy: select_best\nsplits: {seed: 7}\n")
    refused = run(billed, "audits/test_smoke.py", *GRANTED, "--fusion-resume")
    assert refused.ret == 4
    assert "policy, splits.seed" in refused.stdout.str() + refused.stderr.str()
    file.write_text("concurrency: 2\n")
    run(billed, "audits/test_smoke.py", *GRANTED, "--fusion-resume").assert_outcomes(passed=1)
    [change] = stored(billed, "run.json")["sessions"][-1]["changes"]
    assert (change["field"], change["after"]) == ("concurrency", 2)
    assert len(server.billed()) == 4


def test_a_cap_below_what_is_spent_stops_new_calls(billed: pytest.Pytester, server: Server) -> None:
    run(billed, "audits/test_smoke.py", *GRANTED).assert_outcomes(passed=1)
    smoke = billed.path / "audits" / "test_smoke.py"
    smoke.write_text(SMOKE.replace("task {task}", "another task {task}"))
    result = run(billed, "audits/test_smoke.py", "--fusion-run-id=r", "--fusion-budget=0.001", "--fusion-resume")
    result.assert_outcomes(failed=1)
    assert result.ret == 1
    assert len(server.billed()) == 4
    result.stdout.fnmatch_lines(
        ["*the cap of * USD: * spent, * the next call of phase 1 needs up to *nothing was sent*"]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_phase_that_was_not_opened_has_no_money(billed: pytest.Pytester, server: Server) -> None:
    (billed.path / "audits" / "test_smoke.py").write_text(
        SMOKE.replace('smoke = budget.phase("1", suite="pocket", tasks=2, est=3_000)', "")
        .replace("smoke.scope(", 'Scope(phase="3", ')
        .replace("\n\n\ndef", "\nfrom pytest_fusion_audit.metering.scope import Scope\n\n\ndef", 1)
    )
    result = run(billed, "audits/test_smoke.py", *GRANTED)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*call budget.phase('3') first*"])
    assert server.rows == []


def test_an_imported_run_is_never_spent_into(billed: pytest.Pytester, server: Server) -> None:
    run(billed, "audits", "-m", "replay", "--fusion-run-id=r", "--fusion-import=recorded")
    result = run(billed, "audits/test_smoke.py", *GRANTED)
    assert (result.ret, server.rows) == (4, [])
    assert "holds a run of mode 'imported'" in result.stdout.str() + result.stderr.str()


# -- replay (case 15)


def test_a_replay_needs_no_key_opens_no_socket_and_changes_no_byte(
    billed: pytest.Pytester, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(billed, "audits/test_smoke.py", *GRANTED).assert_outcomes(passed=1)
    calls = billed.path / "audit" / "r" / "calls"
    before = {path: path.read_bytes() for path in calls.rglob("*") if path.is_file()}
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name)
    billed.makeconftest("""
import socket
import pytest

@pytest.fixture(autouse=True)
def no_sockets(monkeypatch):
    def refuse(*_):
        raise AssertionError("a replay connected")
    monkeypatch.setattr(socket.socket, "connect", refuse)
""")
    replay = ("audits/test_smoke.py", "--fusion-run-id=r", "--fusion-mode=replay")
    result = run(billed, *replay, apart=True)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*answers from the store, nothing is sent or billed*"])
    smoke = billed.path / "audits" / "test_smoke.py"
    smoke.write_text(SMOKE.replace('f"task {task}"', 'f"task {task}" if task == "a" else "changed"'))
    missed = run(billed, *replay, apart=True)
    missed.assert_outcomes(failed=1)
    missed.stdout.fnmatch_lines(["*replay: no stored answer for task 'b', phase 1, stage panel*differs in: prompt*"])
    assert {path: path.read_bytes() for path in calls.rglob("*") if path.is_file()} == before
    assert len(server.rows) == 4


# -- trouble


def test_a_refused_key_stops_and_names_the_variable(billed: pytest.Pytester, server: Server) -> None:
    server.script(*[Reply(kind="key_refused")] * 3)
    result = run(billed, "audits/test_smoke.py", *GRANTED)
    result.assert_outcomes(failed=1)
    assert server.billed() == []
    result.stdout.fnmatch_lines(
        ["*stopped: a server here refused its placeholder key (401*go on with --fusion-resume*"]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize("key", [None, '"sk-ant-in-quotes-0123456789"', "sk-proj-of-the-other-maker-0123"])
def test_a_key_that_is_missing_is_found_before_another_maker_is_paid(
    billed: pytest.Pytester, server: Server, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    if key is None:
        monkeypatch.delenv("ANTHROPIC_API_KEY")
    else:
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    (billed.path / "panel.yaml").write_text(PANEL.format(url=server.url))
    result = run(billed, "audits/test_smoke.py", *GRANTED, "--fusion-panel=panel.yaml")
    assert (result.ret, server.rows) == (4, [])
    said = result.stdout.str() + result.stderr.str()
    assert "ANTHROPIC_API_KEY" in said
    assert key is None or key not in said


def test_blanks_around_a_key_are_told(billed: pytest.Pytester, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    monkeypatch.setenv("ANTHROPIC_API_KEY", f" {ANTHROPIC_KEY}\n")
    result = run(billed, "audits/test_smoke.py", *GRANTED, "--collect-only")
    result.stdout.fnmatch_lines(["note ANTHROPIC_API_KEY has blanks or a line break around the key*"])
    assert server.rows == []


def test_with_a_panel_nothing_else_is_asked(
    billed: pytest.Pytester, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = f'endpoints:\n  - {{id: tiny, provider: openai-compatible, model: smollm, base_url: "{server.url}"}}\n'
    priced = local.replace("model: smollm", "model: smollm, pricing: {input_per_1m_tokens: 0, output_per_1m_tokens: 0}")
    (billed.path / "panel.yaml").write_text(priced)
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name)
    result = run(billed, "audits/test_smoke.py", *GRANTED, "--fusion-panel=panel.yaml")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*'openai' is no endpoint of this run; nothing was sent. Known: tiny*"])
    assert server.rows == []


def test_calls_that_cost_nothing_begin_a_run_too(billed: pytest.Pytester, server: Server) -> None:
    local = f'endpoints:\n  - {{id: openai, provider: openai-compatible, model: smollm, base_url: "{server.url}"'
    free = "pricing: {input_per_1m_tokens: 0, output_per_1m_tokens: 0}"
    priced = f"{local}, capabilities: {{max_output_tokens: 9}}, {free}}}\n"
    (billed.path / "panel.yaml").write_text(priced)
    (billed.path / "audits" / "test_smoke.py").write_text(
        SMOKE.replace(', ("anthropic", "claude-opus-4-8")', ",").replace('"gpt-5.5"', "None")
        .replace('["answered"] * 4', '["answered"] * 2').replace(" > 0", " == 0")
    )  # fmt: skip
    options = ("audits/test_smoke.py", *GRANTED, "--fusion-panel=panel.yaml")
    run(billed, *options).assert_outcomes(passed=1)
    (billed.path / "audits" / "fusion.yaml").write_text("splits: {seed: 7}\n")
    assert run(billed, *options).ret == 4
    assert run(billed, *options, "--fusion-resume").ret == 4
    assert len(server.rows) == 2


def test_a_run_at_work_counts_with_its_whole_cap_towards_the_total(billed: pytest.Pytester, server: Server) -> None:
    (billed.path / "audits" / "fusion.yaml").write_text("spend: {total_usd: 6}\n")
    run(billed, "audits/test_smoke.py", *GRANTED).assert_outcomes(passed=1)
    other = ("audits/test_smoke.py", "--fusion-run-id=other", "--fusion-budget=5", "--collect-only")
    run(billed, *other).stdout.fnmatch_lines(["*may spend up to 5.00 USD*"])
    at_work = Calls(billed.path / "audit" / "r" / "calls", Limits(total=1), "at work")
    try:
        run(billed, *other).stdout.fnmatch_lines(["*may spend up to 1.00 USD*spend.total_usd of 6.00 USD leaves 1.00*"])
    finally:
        at_work.close()


def test_an_import_and_billed_items_exclude_each_other(billed: pytest.Pytester, server: Server) -> None:
    result = run(billed, "audits", *GRANTED, "--fusion-import=recorded")
    assert (result.ret, server.rows) == (4, [])
    assert '-m "not billed"' in result.stdout.str() + result.stderr.str()
    assert not (billed.path / "audit").exists()


def test_settling_an_orphan_reaches_ledger_and_scorecard_and_takes_no_stop_back(
    billed: pytest.Pytester, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script(Reply(kind="reset"), *[Reply(kind="key_refused")] * 3)
    run(billed, "audits/test_smoke.py", *GRANTED)
    folder = billed.path / "audit" / "r"
    rows = [json.loads(line) for line in (folder / "calls" / "journal.jsonl").read_text().splitlines()]
    [orphan] = [row["id"] for row in rows if row.get("e") == "orphan"]
    monkeypatch.chdir(billed.path)
    assert main(["settle", "r", orphan, "0.000007"]) == 0
    assert '"measured_usd": 7e-06' in (folder / "spend-ledger.jsonl").read_text()
    assert '"measured_micro_usd":7' in (folder / "evidence" / "phase.jsonl").read_text()
    assert spend_of(folder).stopped is not None


def test_opening_a_phase_again_forgets_nothing(billed: pytest.Pytester, server: Server) -> None:
    again = '    again = budget.phase("1", note="second")\n    answers = door.run(work)'
    (billed.path / "audits" / "test_smoke.py").write_text(SMOKE.replace("    answers = door.run(work)", again))
    run(billed, "audits/test_smoke.py", *GRANTED).assert_outcomes(passed=1)
    row = json.loads((billed.path / "audit" / "r" / "spend-ledger.jsonl").read_text())
    assert (row["suite"], row["tasks"], row["note"]) == ("pocket", 2, "second")


WITH_A_KEY = """
import os

import pytest

KEY = os.environ["OPENAI_API_KEY"]


@pytest.mark.parametrize("key", [KEY]{ids})
def test_id(key, subtests, budget):
    with subtests.test(msg=KEY):
        assert key == ""
"""


@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.deep)])
def test_a_key_in_an_id_is_refused_and_in_a_subtest_taken_out(
    billed: pytest.Pytester, server: Server, workers: str
) -> None:
    smoke = billed.path / "audits" / "test_smoke.py"
    smoke.write_text(WITH_A_KEY.format(ids=""))
    options = ("audits/test_smoke.py", *GRANTED, "-rA", "--junitxml=j.xml", workers)
    refused = run(billed, *options, apart=True)
    said = refused.stdout.str() + refused.stderr.str()
    assert (refused.ret, OPENAI_KEY in said) == (4, False)
    assert "test_smoke.py: the id of a parametrized item holds a key" in said
    smoke.write_text(WITH_A_KEY.format(ids=", ids=['the key']"))
    result = run(billed, *options, "-v", apart=True)
    said = result.stdout.str() + result.stderr.str() + (billed.path / "j.xml").read_text()
    assert result.ret == 1
    assert OPENAI_KEY[-8:] not in said  # not even what pytest leaves of it in a comparison
    assert server.rows == []


def test_keys_stand_nowhere_and_the_search_finds_one_that_does(billed: pytest.Pytester, server: Server) -> None:
    smoke = billed.path / "audits" / "test_smoke.py"
    smoke.write_text(
        SMOKE
        + """

def test_a_key_in_an_output(run):
    import os
    key = os.environ["OPENAI_API_KEY"]
    print(key)
    (run.path / "notes.txt").write_text("first line\\n" + key)
    assert key == "", key
"""
    )
    result = run(billed, "audits/test_smoke.py", *GRANTED, "--showlocals", "-rA", "--junitxml=j.xml", apart=True)
    assert result.ret == 1
    said = result.stdout.str() + result.stderr.str()
    assert OPENAI_KEY not in said
    assert OPENAI_KEY not in (billed.path / "j.xml").read_text()
    assert "notes.txt:2: the key of OPENAI_API_KEY" in said


def test_the_example_of_the_docs_runs(billed: pytest.Pytester, server: Server) -> None:
    text = (REPO / "docs" / "metering.md").read_text()
    (billed.path / "audits" / "test_smoke.py").write_text(text.split("```python\n")[1].split("```")[0])
    command = text.split("```\npytest ")[1].split("\n")[0]
    result = run(billed, *command.split())
    result.assert_outcomes(passed=1)
    assert len(server.billed()) == 1


def test_an_unrelated_door_is_not_billed(billed: pytest.Pytester, server: Server) -> None:
    (billed.path / "audits" / "test_smoke.py").write_text(
        "import pytest\n\n\n@pytest.fixture\ndef door():\n    return 7\n\n\ndef test_it(door):\n    assert door == 7\n"
    )
    run(billed, "audits/test_smoke.py").assert_outcomes(passed=1)


def test_a_door_that_wraps_ours_is_billed(billed: pytest.Pytester, server: Server) -> None:
    (billed.path / "audits" / "test_smoke.py").write_text(
        "import pytest\n\n\n@pytest.fixture\ndef door(door):\n    return door\n\n\ndef test_it(door):\n    pass\n"
    )
    assert run(billed, "audits/test_smoke.py", "--fusion-run-id=r").ret == 4
    deselected = run(billed, "audits/test_smoke.py", "--fusion-run-id=r", "-m", "not billed")
    deselected.assert_outcomes(deselected=1)


def test_two_sessions_at_once_on_one_run(billed: pytest.Pytester, server: Server) -> None:
    run(billed, "audits/test_smoke.py", *GRANTED).assert_outcomes(passed=1)
    other = Calls(billed.path / "audit" / "r" / "calls", Limits(total=1), "another session")
    try:
        before = (billed.path / "audit" / "r" / "run.json").read_bytes()
        result = run(billed, "audits/test_smoke.py", *GRANTED, "--fusion-resume")
        assert result.ret == 4
        assert "another session (process" in result.stdout.str() + result.stderr.str()
        assert (billed.path / "audit" / "r" / "run.json").read_bytes() == before
    finally:
        other.close()


ASKS_WHILE_RUNNING = """
def test_it(request):
    request.getfixturevalue("door")
    raise AssertionError("the door is open")
"""


@pytest.mark.parametrize(
    ("options", "outcome", "said"),
    [
        ((), "failed", "nobody has agreed to it; nothing was sent"),
        (("--fusion-budget=5", "--fusion-spend=never"), "skipped", ""),
    ],
)
def test_who_asks_for_the_door_while_running_needs_consent_too(
    billed: pytest.Pytester, server: Server, options: tuple[str, ...], outcome: str, said: str
) -> None:
    (billed.path / "audits" / "test_smoke.py").write_text(ASKS_WHILE_RUNNING)
    result = run(billed, "audits/test_smoke.py", "--fusion-run-id=r", *options)
    result.assert_outcomes(**{outcome: 1})
    assert said in result.stdout.str()
    assert "the door is open" not in result.stdout.str()
    assert server.rows == []
    assert not (billed.path / "audit").exists()


@pytest.mark.parametrize(
    "item",
    [
        "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef every(door):\n    pass\n\n\ndef test_it():\n    pass\n",
        "import pytest\n\n\n@pytest.mark.usefixtures('budget')\ndef test_it():\n    pass\n",
        "import pytest\n\n\n@pytest.mark.parametrize('door', [1], indirect=True)\ndef test_it(door):\n    pass\n",
        "class TestIt:\n    def test_it(self, budget):\n        pass\n",
    ],
    ids=["autouse", "usefixtures", "indirect", "method"],
)
def test_whatever_way_an_item_gets_the_door_it_is_billed(billed: pytest.Pytester, server: Server, item: str) -> None:
    (billed.path / "audits" / "test_smoke.py").write_text(item)
    assert run(billed, "audits/test_smoke.py", "--fusion-run-id=r").ret == 4
    assert server.rows == []


def test_a_parameter_called_door_is_no_door(billed: pytest.Pytester) -> None:
    (billed.path / "audits" / "test_smoke.py").write_text(
        "import pytest\n\n\n@pytest.mark.parametrize('door', [1])\ndef test_it(door):\n    assert door == 1\n"
    )
    run(billed, "audits/test_smoke.py").assert_outcomes(passed=1)


@pytest.mark.parametrize("sessions", ['"x"', "[1]", '{"a": 1}'])
def test_a_damaged_run_json_is_one_line(billed: pytest.Pytester, server: Server, sessions: str) -> None:
    run(billed, "audits/test_smoke.py", *GRANTED).assert_outcomes(passed=1)
    path = billed.path / "audit" / "r" / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "sessions": json.loads(sessions)}))
    result = run(billed, "audits/test_smoke.py", *GRANTED, "--fusion-resume")
    assert result.ret == 4
    assert "run.json: sessions" in result.stdout.str() + result.stderr.str()
    assert len(server.billed()) == 4


@pytest.mark.parametrize(
    "option", ["--fusion-plan", "--fusion-until=0", "--fusion-deadline=1m", "--fusion-target=reference"]
)
def test_an_option_that_would_hold_something_back_is_not_passed_over(
    billed: pytest.Pytester, server: Server, option: str
) -> None:
    result = run(billed, "audits/test_smoke.py", *GRANTED, option)
    assert (result.ret, server.rows) == (4, [])
    assert option.partition("=")[0] in result.stdout.str() + result.stderr.str()


def test_a_resume_of_a_run_that_is_not_there_begins_none(billed: pytest.Pytester, server: Server) -> None:
    result = run(billed, "audits/test_smoke.py", *GRANTED, "--fusion-resume")
    assert (result.ret, server.rows) == (4, [])
    assert "Leave the option out to begin" in result.stdout.str() + result.stderr.str()


def test_a_replay_of_nothing_is_a_mistake(billed: pytest.Pytester, server: Server) -> None:
    result = run(billed, "audits/test_smoke.py", "--fusion-run-id=r", "--fusion-mode=replay")
    assert (result.ret, server.rows) == (4, [])
    assert not (billed.path / "audit").exists()
