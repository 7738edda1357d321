"""Case 58 as a whole: keys planted in every corner of a real test session, searched in everything it leaves behind.

The session shows locals, prints two verbosity levels more, writes JUnit XML and JSON, serial and in two workers.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from tests.metering.planted_keys import ENVIRONMENT, leaks

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("httpx2")

LOUD = (
    "--showlocals",
    "-vv",
    "-rA",
    "--junitxml=j.xml",
    "--json-report",
    "--json-report-file=j.json",
    "-p",
    "no:cacheprovider",
)

NAMED = "--fusion-run-id=r"  # the plugin's guard is at work in sessions that name a run

#: What the package keeps out of a traceback by itself: the frames of a failing test hold its objects.
WITHOUT_HOOKS = """
import os

import httpx2
import pytest

from pytest_fusion_audit.metering.hosts import environment_endpoints, resolve_endpoint
from pytest_fusion_audit.metering.keys import KeyRing, read_key


def test_a_secret_in_a_local():
    secret = read_key("OPENAI_API_KEY", os.environ).secret
    holder = {"headers": [("x-api-key", secret)], "nested": {"again": (secret,)}}
    text = f"{secret} {secret!r} {holder}"
    assert secret == "something else", text


def test_a_secret_compared_to_another():
    ours, theirs = (read_key(name, os.environ).secret for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"))
    assert ours == theirs


def test_a_ring_in_a_local():
    ring = KeyRing(os.environ)
    endpoint = ring.endpoint("https://api.anthropic.com")
    key = ring.key_of(endpoint)
    warnings = ring.warnings
    scrubber = ring.scrubber
    assert not warnings


def test_a_key_of_wrong_format(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", '"' + os.environ["OPENAI_API_KEY"] + '"')
    read_key("OPENAI_API_KEY", os.environ)


def test_a_base_url_with_a_password(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", os.environ["HTTPS_PROXY"].replace("proxy.example", "gw.example"))
    environment_endpoints(os.environ)


def test_an_unlisted_host():
    ring = KeyRing(os.environ)
    ring.authorise(httpx2.Request("POST", "https://gw.example/v1/chat/completions", json={}))


@pytest.fixture
def key():
    return read_key("ANTHROPIC_API_KEY", os.environ).secret


def test_a_secret_of_a_fixture(key):
    print(key, repr(key))
    pytest.fail(f"with {key}")


@pytest.fixture
def broken():
    secret = read_key("OPENAI_API_KEY", os.environ).secret
    raise RuntimeError(f"401 from api.openai.com for OPENAI_API_KEY: {secret}")


def test_of_a_broken_fixture(broken):
    pass
"""

#: What the plugin's guard keeps out: raw keys, as other people's code holds, prints, logs and raises them.
WITH_HOOKS = """
import base64
import json
import logging
import os
import sys
import urllib.parse
import warnings

import httpx2
import pytest

OPENAI = os.environ["OPENAI_API_KEY"]
ANTHROPIC = os.environ["ANTHROPIC_API_KEY"].strip()
ROUTER = os.environ["ROUTER_API_KEY"]
URL = os.environ["HTTPS_PROXY"]


def test_raw_keys_in_locals():
    headers = {"Authorization": f"Bearer {OPENAI}", "x-api-key": ANTHROPIC}
    listed = [headers, (ROUTER, ROUTER.encode()), json.dumps({"key": ROUTER})]
    request = httpx2.Request("POST", "https://gw.example/v1?api_key=" + OPENAI, headers=headers)
    environment = dict(os.environ)
    assert headers == {}, "401 from api.openai.com for OPENAI_API_KEY"


def test_compared_texts():
    assert f"print('{OPENAI}')" == f"print('{ANTHROPIC}')"


def test_an_exception_of_a_client():
    try:
        raise OSError(f"Incorrect API key provided: {OPENAI}.")
    except OSError as cause:
        pair = base64.b64encode(b"user:" + ROUTER.encode()).decode()
        raise RuntimeError({"authorization": f"Basic {pair}"}) from cause


def test_captured_output(record_property):
    print(OPENAI, urllib.parse.quote(ROUTER, safe=""))
    print(base64.b64encode(ANTHROPIC.encode()).decode(), file=sys.stderr)
    logging.getLogger("client").warning("request to %s with %s", URL, {"x-api-key": ANTHROPIC})
    record_property("header", f"Bearer {OPENAI}")
    assert True


def test_a_warning():
    warnings.warn(f"base_url is {URL}", stacklevel=1)


def test_a_warning_that_is_shown():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.warn(f"key {OPENAI}", stacklevel=1)


@pytest.mark.skip(reason=f"no key, only {OPENAI}")
def test_skipped():
    pass


@pytest.mark.xfail(reason=f"known: {ROUTER}")
def test_expected_to_fail():
    raise ValueError(ANTHROPIC)


@pytest.fixture
def leaking():
    yield ANTHROPIC
    raise RuntimeError(f"teardown of {URL}")


def test_teardown(leaking):
    print(leaking)
"""

BROKEN_MODULE = """
import os
KEY = os.environ["OPENAI_API_KEY"]
raise RuntimeError(f"while importing: {KEY} {os.environ['ROUTER_API_KEY']}")
"""


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    pytester.makeini("[pytest]\nmarkers =\n")
    return pytester


def run(session: pytest.Pytester, *options: str) -> tuple[str, str]:
    result = session.runpytest_subprocess(*LOUD, *options)
    out, err = result.stdout.str(), result.stderr.str()
    assert result.ret == 1, out + err
    return out, err


def cases(folder: Path) -> dict[str, str]:
    """Outcome of each test in the JUnit file."""
    root = ET.parse(folder / "j.xml").getroot()
    return {case.attrib["name"]: next((child.tag for child in case), "passed") for case in root.iter("testcase")}


@pytest.mark.parametrize(("workers", "style"), [("-n0", "--tb=long"), ("-n2", "--tb=long"), ("-n0", "--tb=native")])
def test_objects_of_this_package_show_no_key_in_any_traceback(
    session: pytest.Pytester, workers: str, style: str
) -> None:
    session.makepyfile(test_planted=WITHOUT_HOOKS)
    out, err = run(session, workers, style)
    assert leaks(session.path, outputs=(out, err)) == []
    found = cases(session.path)
    assert len(found) == 8
    assert set(found.values()) == {"failure", "error"}
    for visible in (
        "401 from api.openai.com for OPENAI_API_KEY",
        "OPENAI_BASE_URL in the environment",
        "stands in quotes",
    ):
        assert visible in out
    if style == "--tb=long":
        assert "<key of OPENAI_API_KEY>" in out


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_raw_keys_of_others_are_taken_out_of_every_report(session: pytest.Pytester, workers: str) -> None:
    session.makepyfile(test_planted=WITH_HOOKS)
    out, err = run(session, workers, NAMED)
    assert leaks(session.path, outputs=(out, err)) == []
    found = cases(session.path)
    assert found["test_captured_output"] == "properties"
    assert found["test_skipped"] == "skipped"
    for visible in ("401 from api.openai.com for OPENAI_API_KEY", "Incorrect API key provided: [key].", "Bearer [key]"):
        assert visible in out


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_module_that_cannot_be_imported_shows_no_key(session: pytest.Pytester, workers: str) -> None:
    session.makepyfile(test_broken=BROKEN_MODULE)
    result = session.runpytest_subprocess(*LOUD, workers, NAMED)
    assert result.ret != 0
    assert leaks(session.path, outputs=(result.stdout.str(), result.stderr.str())) == []
    result.stdout.fnmatch_lines(["*while importing: [[]key] [[]key]*"])


def test_the_search_itself_finds_what_is_planted(session: pytest.Pytester) -> None:
    session.makepyfile(test_planted=WITH_HOOKS)
    out, err = run(session)
    assert len({leak.rpartition(": ")[2] for leak in leaks(session.path, outputs=(out, err))}) >= 6
