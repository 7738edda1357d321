"""Panel files: FusionKit's form as it is, and every mistake in one line with file, line and field."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fusion_audit.configuration import ConfigurationError
from pytest_fusion_audit.configuration.panel import Panel, load_panel
from pytest_fusion_audit.configuration.reading import parse_section
from tests.shared_data import shared

if TYPE_CHECKING:
    from pathlib import Path

FILE = """\
endpoints:
  - id: gpt
    provider: openai
    model: gpt-5.5
    base_url: https://api.openai.com
    api_key_env: OPENAI_API_KEY
    pricing: {input_per_1m_tokens: 1.25, output_per_1m_tokens: 10, currency: USD, per_image: 3}
    capabilities: {tool_calls: true}
    tags: [cloud]
    cutoff: 2026-01-31
  - {id: opus, provider: anthropic, model: claude-opus-4-8, api_key: x}
panel_models: [gpt, opus]
judge_model: gpt
default_mode: panel
sampling: {temperature: 0.2, max_tokens: 8192, top_k: 3}
"""


def test_a_panel_file(tmp_path: Path) -> None:
    (tmp_path / "panel.yaml").write_text(FILE)
    panel = load_panel("panel.yaml", base=tmp_path)
    assert [endpoint.id for endpoint in panel.models] == ["gpt", "opus"]
    assert str(panel.endpoint("gpt").cutoff) == "2026-01-31"
    assert panel.endpoint("gpt").pricing is not None
    assert (panel.sampling.temperature, panel.sampling.seed) == (0.2, None)
    assert panel.not_read() == ["default_mode", "endpoints[].tags", "sampling.top_k"]
    with pytest.raises(KeyError):
        panel.endpoint("nobody")


def test_ids_of_a_newer_fusionkit() -> None:
    text = "routekit_url: http://127.0.0.1:1\nroutekit_model_ids: [openai/gpt-5.5, anthropic/claude-opus-4-8]\n"
    panel = parse_section(Panel, text + "panel_models: [openai/gpt-5.5]\n", "p.yaml")
    assert [(each.provider, each.model) for each in panel.models] == [
        ("openai", "gpt-5.5"),
        ("anthropic", "claude-opus-4-8"),
    ]
    assert panel.not_read() == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("provider: openai", "provider: mistral", "line 3: endpoints[0].provider"),
        ("model: gpt-5.5", "model: ''", "line 4: endpoints[0].model"),
        ("api_key: x", "api_key: sk-proj-0123456789", "line 11: endpoints[1].api_key: holds a key"),
        ("https://api.openai.com", "https://u:pw@api.openai.com", "line 5: endpoints[0].base_url: holds credentials"),
        ("OPENAI_API_KEY", "sk-proj-0123456789", "line 6: endpoints[0].api_key_env: give the name of"),
        ("[gpt, opus]", "[gpt, sonnet]", "line 12: panel_models: sonnet is not the id of an endpoint"),
        ("[gpt, opus]", "[gpt, gpt]", "line 12: panel_models: gpt stands there twice"),
        ("id: opus", "id: gpt", "line 1: endpoints: gpt stands there twice"),
        ("judge_model: gpt", "judge_model: nobody", "line 13: judge_model"),
        ("temperature: 0.2", "temperature: 5", "line 15: sampling.temperature"),
        ("input_per_1m_tokens: 1.25", "input_per_1m_tokens: -1", "line 7: endpoints[0].pricing.input_per_1m_tokens"),
        ("cutoff: 2026-01-31", "cutoff: soon", "line 10: endpoints[0].cutoff"),
        ("judge_model: gpt", "judge_model: gpt\njudge_model: opus", "line 14: judge_model stands there twice"),
        ("endpoints:", "- endpoints:", "not YAML"),
    ],
)
def test_mistakes(before: str, after: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_section(Panel, FILE.replace(before, after, 1), "panel.yaml")
    assert said in str(caught.value)
    assert "0123456789" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_names_the_option(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.yaml: no such file; correct --fusion-panel"):
        load_panel("nowhere.yaml", base=tmp_path)


@given(st.text(max_size=200))
def test_no_text_gives_anything_but_a_panel_or_one_line(text: str) -> None:
    try:
        said = parse_section(Panel, text, "p.yaml").not_read()
    except ConfigurationError as error:
        said = [str(error)]
    assert all("\n" not in each for each in said)


def test_shared_panel_file() -> None:
    panel = load_panel(shared("runs/fusionkit-20260701/panel-config-baseline.yaml"))
    assert panel.panel_models == ("gpt", "opus")
    assert "harness_prompt_passthrough" in panel.not_read()
