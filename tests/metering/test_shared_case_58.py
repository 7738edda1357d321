"""Case 58 of ``../shared/cases``: keys in every corner, on the case's own values."""

from __future__ import annotations

import base64
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fusion_audit.configuration import ConfigurationError, parse_configuration
from pytest_fusion_audit.metering.hosts import UnlistedHostError, resolve_endpoint
from pytest_fusion_audit.metering.keys import KeyRing, read_key, scan
from pytest_fusion_audit.metering.output_guard import guarding
from tests.shared_data import shared

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def case() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shared("cases/58-keys-in-every-corner.json").read_text())
    return found


def test_every_corner(case: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    given = case["input"]
    ring = KeyRing(given["env"], urls=[given["base_url"]])
    scrubber = ring.scrubber
    message = f"401 from api.openai.com, check OPENAI_API_KEY: {json.dumps(given['http_401_body'])}"
    (tmp_path / "fault.json").write_text(scrubber.text(json.dumps({"message": message})))
    (tmp_path / "run.json").write_text(json.dumps(scrubber.deep({"base_url": given["base_url"]})))
    (tmp_path / "headers.txt").write_text(scrubber.text(repr(given["request_headers_in_exception"])))
    (tmp_path / "encoded.bin").write_bytes(scrubber.bytes(base64.b64encode(given["env"]["OPENAI_API_KEY"].encode())))
    (tmp_path / "body").write_bytes(scrubber.content(given["model_output_quotes_key"].encode()))
    with guarding(scrubber):
        logging.getLogger("gateway").error("to %s: %s", given["base_url"], given["request_headers_in_exception"])
    (tmp_path / "log.txt").write_text(caplog.text)
    for file in tmp_path.iterdir():
        for trace in case["expected"]["substrings_absent_from_all_files_and_output"]:
            assert trace not in file.read_text()
    for visible in ("401", "api.openai.com", "OPENAI_API_KEY"):
        assert visible in (tmp_path / "fault.json").read_text()
    assert scan(tmp_path, scrubber) == []
    (tmp_path / "leak").write_text(given["model_output_quotes_key"])
    assert [str(hit) for hit in scan(tmp_path, scrubber)] == ["leak:1: the key of OPENAI_API_KEY"]


def test_a_trailing_newline_is_stripped_with_a_warning(case: dict[str, Any]) -> None:
    environ = case["input"]["env"]
    read = read_key("ANTHROPIC_API_KEY", environ)
    assert read.secret.reveal() == environ["ANTHROPIC_API_KEY"].strip()
    assert read.warning
    assert read.secret.reveal() not in read.warning


def test_the_base_url_with_credentials_is_refused_without_being_repeated(case: dict[str, Any]) -> None:
    url = case["input"]["base_url"]
    with pytest.raises(UnlistedHostError) as refused:
        resolve_endpoint(url, source="the panel")
    with pytest.raises(ConfigurationError) as wrong:
        parse_configuration(f"target: {{url: '{url}'}}")
    for trace in case["expected"]["substrings_absent_from_all_files_and_output"]:
        assert trace not in f"{refused.value} {wrong.value}"
