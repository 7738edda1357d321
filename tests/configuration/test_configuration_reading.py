"""``fusion.yaml``: defaults, what every section takes, errors that name file, line and field and repeat no value."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fusion_audit.configuration import Configuration, ConfigurationError, load_configuration, parse_configuration

if TYPE_CHECKING:
    from pathlib import Path

PLANTED = "sk-test-7777PLANTED7777"

EVERYTHING = """
target: {url: "https://gw.example/v1", model: fused, dialect: messages, api_key_env: GW_KEY, headers: {x-team: TEAM},
         timeout_s: 30, max_concurrency: 2, requests_per_minute: 60, max_output_tokens: 4096,
         pricing: {usd_per_request: 0.05}, tools: true, web_search: no}
endpoints:
  allow:
    - url: https://router.example/api/v1
      provider: openai
      api_key_env: ROUTER_KEY
      auth: bearer
      model_map: {gpt-5.5: openai/gpt-5.5}
      pricing: {gpt-5.5: {input_per_1m_tokens: 5.25, output_per_1m_tokens: 31.5}}
panel: audits/panel.yaml
suites: {primary: humaneval+, replication: mbpp+, non_coding: gsm8k, multi_turn: aider-polyglot}
splits: {seed: 7, dev: 100, val: 50, locked: locked.txt, monitor: 30, window: {since: 2026-01-01, until: 2026-06-30}}
samples: {per_member: 2, temperatures: [0.0, 0.8]}
policy: exec_select
judge: opus
synthesizer: gpt
prompts: {judge: prompts/judge.md, synthesizer: prompts/synthesizer.md}
truncate_candidates: 1200
test_timeout_s: 12.5
max_output_tokens: 8192
spend: {consent: yes, budget_usd: 120, total_usd: 1000.50}
caps_usd: {total: 200, reserve: 60, smoke: 5, baseline: 80, composition: 20, ablations: 15, locked: 40, served: 20}
prefer: {baseline: batch, locked: flex, served: standard}
concurrency: 16
statistics: {alpha: 0.01, margin: 0.03, expected_uplift: 0.1, truncation_limit: 0.02, seeds: 3}
holdout: {vaults: 2, reuse: declared}
climb:
  proposers: [{tier: 1, model: opus}, {tier: 2, folder: variants}, {tier: 3, command: "agent --edit"}]
  patience: 5
  space: {samples.per_member: [1, 2], policy: [rewrite, select_best]}
gates: {commands: ["make test"], known_red: {"make lint": "old tree"}, max_age_days: 30}
fixer: agent --fix
attestations: [{criterion: "10.3", artifact: docs/a.md, sha256: "%s", statement: read it}]
git: {mode: push, pull_request_command: "gh pr create"}
""" % ("a" * 64)


def refusal(text: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        parse_configuration(text, "audits/fusion.yaml")
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "spend:\nsplits:\n  window:\n", "judge: null"])
def test_what_says_nothing_gives_the_defaults(text: str) -> None:
    assert parse_configuration(text) == Configuration()


def test_every_section_is_read() -> None:
    found = parse_configuration(EVERYTHING)
    default = Configuration()
    same = [name for name in Configuration.model_fields if getattr(found, name) == getattr(default, name)]
    assert same == []
    assert found.spend.budget_usd == Decimal(120)
    assert found.spend.total_usd == Decimal("1000.5")
    assert found.splits.window.since == date(2026, 1, 1)
    assert found.endpoints.allow[0].pricing["gpt-5.5"].input_per_1m_tokens == Decimal("5.25")
    assert found.prefer == {"baseline": "batch", "locked": "flex", "served": "standard"}
    assert found.samples.temperatures == (0.0, 0.8)


def test_json_holds_every_field_and_reads_back() -> None:
    found = parse_configuration(EVERYTHING)
    stored = json.loads(json.dumps(found.to_json()))
    assert Configuration.model_validate(stored) == found
    assert list(stored) == list(Configuration.model_fields)
    assert stored["spend"] == {"consent": True, "budget_usd": 120, "total_usd": 1000.5}
    assert json.loads(json.dumps(Configuration().to_json()))["git"] == {"mode": "off", "pull_request_command": None}


@pytest.mark.parametrize("text", ["git: {mode: off}", 'git: {mode: "off"}', "git: {}"])
def test_off_is_off_although_yaml_reads_it_as_false(text: str) -> None:
    assert parse_configuration(text).git.mode == "off"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("spend:\n  budget_usd: 5\n  budgt: 3\n", 3, "spend.budgt: no such field; did you mean budget_usd?"),
        ("policy: rewrite\nsuite: x\n", 2, "suite: no such field; did you mean suites?"),
        ("window: 3", 1, "window: no such field; known here: target, endpoints"),
        (
            "endpoints:\n  allow:\n    - {url: 'https://a.example', authh: bearer}",
            3,
            "endpoints.allow[0].authh: no such field",
        ),
        ("endpoints:\n  allow:\n    - {url: 'https://a.example'}", 3, "endpoints.allow[0].provider: is missing"),
        ("policy: rewrite\npolicy: rewrite\n", 2, "policy stands there twice"),
        ("spend:\n  consent: yes\n", 2, "spend.consent: needs budget_usd"),
        ("spend: {consent: yes, budget_usd: 0}", 1, "spend.consent: needs budget_usd"),
        ("spend: {consent: 'yes', budget_usd: 5}", 1, "spend.consent: Input should be a valid boolean"),
        ("spend: {consent: 1, budget_usd: 5}", 1, "spend.consent: Input should be a valid boolean"),
        ("spend:\n  budget_usd: -5", 2, "spend.budget_usd"),
        ("spend:\n  budget_usd: yes", 2, "spend.budget_usd: give an amount of US dollars"),
        ("spend:\n  budget_usd: .inf", 2, "spend.budget_usd"),
        ("spend:\n  budget_usd: 1e9", 2, "spend.budget_usd"),
        ("spend:\n  budget_usd: 0.0000001", 2, "spend.budget_usd"),
        ("spend:\n  budget_usd: 50\n  total_usd: 20", 2, "spend.budget_usd: is above total_usd"),
        ("caps_usd:\n  total: 100\n  baseline: 150", 3, "caps_usd.baseline: is above the total of 100 USD"),
        ("caps_usd:\n  baseline: 501", 2, "caps_usd.baseline: is above the total of 500 USD"),
        ("caps_usd:\n  reserve: 50\n  locked: 40\n  served: 20", 2, "caps_usd.reserve: locked and served"),
        ("caps_usd:\n  total: 50\n  reserve: 50", 3, "caps_usd.reserve: leaves nothing"),
        ("caps_usd:\n  climb: 50", 2, "caps_usd.climb: no such field"),
        ("caps_usd: {total: 10}\nspend:\n  budget_usd: 11", 3, "spend.budget_usd: is above caps_usd.total"),
        ("concurrency: 0", 1, "concurrency"),
        ("concurrency: true", 1, "concurrency"),
        ("concurrency: '4'", 1, "concurrency"),
        ("prefer:\n  baseline: batched", 2, "prefer.baseline"),
        ("prefer:\n  served: batch", 2, "prefer.served: a served gateway"),
        ("prefer:\n  phase3: batch", 2, "prefer.phase3: Input should be 'smoke', 'baseline'"),
        ("target: {kind: reference, url: 'http://127.0.0.1:1/v1'}", 1, "target.url: give kind or url"),
        ("target: {kind: fusionkit-0.9}", 1, "target.kind"),
        ("target:\n  url: ftp://x.example", 2, "target.url: give a URL that starts with http"),
        ("target:\n  pricing: {input_per_1m_tokens: 3}", 2, "target.pricing: give input_per_1m_tokens and output"),
        ("target:\n  pricing: {}", 2, "target.pricing: give input_per_1m_tokens and output"),
        ("samples: {per_member: 3, temperatures: [0.1]}", 1, "samples.temperatures: give one per sample"),
        ("splits:\n  dev: -1", 2, "splits.dev"),
        ("splits:\n  dev: 1.5", 2, "splits.dev"),
        ("splits:\n  window: {since: 2026-02-01, until: 2026-01-01}", 2, "splits.window.since: is later"),
        ("statistics: {alpha: 0}", 1, "statistics.alpha"),
        ("holdout: {vaults: 0}", 1, "holdout.vaults"),
        ("holdout: {reuse: yes}", 1, "holdout.reuse"),
        ("climb:\n  proposers:\n    - {tier: 1}", 3, "climb.proposers[0]: give exactly one of"),
        ("climb:\n  proposers:\n    - {tier: 4, model: m}", 3, "climb.proposers[0].tier"),
        ("attestations: [{criterion: 10.3, artifact: a, sha256: b, statement: c}]", 1, "attestations[0].criterion"),
        ("git: {mode: on}", 1, "git.mode"),
        ("- policy", 1, "not a mapping"),
        ("1: x", 1, "Keys should be strings"),
        ("policy: [\n", 2, "not YAML"),
        ("policy: !!python/name:os.system x", 1, "not YAML"),
        ("policy: rewrite\n\tjudge: x\n", 2, "not YAML"),
        ("x: &x [*x]", 1, "x: no such field"),
    ],
)
def test_a_mistake_names_file_line_and_field(text: str, line: int, said: str) -> None:
    message = refusal(text)
    assert message.startswith(f"audits/fusion.yaml, line {line}: ")
    assert said in message


def test_several_mistakes_are_counted() -> None:
    assert refusal("concurrency: 0\npolicy: x\nholdout: {vaults: 0}").endswith("; and 2 more")


@pytest.mark.parametrize(
    "change",
    [
        "api_key_env: OPENAI_API_KEY",
        "api_key_env: ANTHROPIC_API_KEY",
        "auth: basic",
        "model_map: {}",
        "pricing: {}",
        "pricing: {gpt-5.5: {input_per_1m_tokens: 5}}",
        "url: router.example/v1",
        "provider: mistral",
    ],
)
def test_an_allowed_host_needs_a_key_of_its_own_a_map_and_prices(change: str) -> None:
    field = change.partition(":")[0]
    fields = {
        "url": "https://router.example/v1",
        "provider": "openai",
        "api_key_env": "ROUTER_KEY",
        "auth": "bearer",
        "model_map": "{gpt-5.5: gpt}",
        "pricing": "{gpt-5.5: {input_per_1m_tokens: 5, output_per_1m_tokens: 30}}",
    }
    good = "\n".join(f"      {name}: {value}" for name, value in fields.items())
    assert parse_configuration(f"endpoints:\n  allow:\n    -\n{good}").endpoints.allow[0].api_key_env == "ROUTER_KEY"
    fields[field] = change.partition(": ")[2]
    bad = "\n".join(f"      {name}: {value}" for name, value in fields.items())
    assert f"endpoints.allow[0].{field}" in refusal(f"endpoints:\n  allow:\n    -\n{bad}")
    del fields[field]
    without = "\n".join(f"      {name}: {value}" for name, value in fields.items())
    assert f"endpoints.allow[0].{field}" in refusal(f"endpoints:\n  allow:\n    -\n{without}")


@pytest.mark.parametrize(
    "text",
    [
        f"target: {{api_key_env: {PLANTED}}}",
        f"target: {{headers: {{x-api-key: {PLANTED}}}}}",
        f"target: {{headers: {{{PLANTED}: 5}}}}",
        f"{PLANTED}: 1",
        f"{PLANTED}: 1\n{PLANTED}: 2",
        f"spend: {{budget_usd: {PLANTED}}}",
        f"concurrency: {PLANTED}",
        f"policy: {PLANTED}",
        f"prefer: {{{PLANTED}: batch}}",
        f'target: {{url: "https://u:{PLANTED}@gw.example/v1"}}',
        f'target: {{url: "https://gw.example/v1?api_key={PLANTED}"}}',
        f'target: {{url: "{PLANTED}"}}',
        f'panel: "{PLANTED}" x',
        f"panel: @{PLANTED}",
        f"panel: [{PLANTED}",
        f"? [{PLANTED}]\n: 1",
    ],
)
def test_a_key_in_the_wrong_place_is_never_repeated(text: str) -> None:
    message = refusal(text)
    assert "7777" not in message
    assert "PLANTED" not in message


def test_a_url_may_carry_a_plain_query() -> None:
    url = "https://x.openai.example/v1?api-version=2026-10-01"
    assert parse_configuration(f'target: {{url: "{url}"}}').target.url == url


def test_the_default_file_may_be_missing_a_named_one_may_not(tmp_path: Path) -> None:
    assert load_configuration(base=tmp_path) == Configuration()
    with pytest.raises(ConfigurationError, match=r"mine.yaml: no such file; correct --fusion-config"):
        load_configuration("mine.yaml", base=tmp_path)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_configuration(tmp_path)


def test_files_are_utf8_with_or_without_a_mark(tmp_path: Path) -> None:
    (tmp_path / "audits").mkdir()
    file = tmp_path / "audits" / "fusion.yaml"
    file.write_bytes(b"\xef\xbb\xbfjudge: \xc3\xa9\r\nconcurrency: 2\r\n")
    assert load_configuration(base=tmp_path).judge == "é"
    file.write_bytes(b"judge: \xff")
    with pytest.raises(ConfigurationError, match=r"audits/fusion.yaml: not UTF-8 at byte 7"):
        load_configuration(base=tmp_path)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        parse_configuration(text)
    except ConfigurationError as error:
        assert "\n" not in str(error)  # noqa: PT017 - whether it is raised depends on the text


def test_it_loads_neither_pytest_nor_an_http_client() -> None:
    code = "import sys, pytest_fusion_audit.configuration; print({'pytest', 'httpx2', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
