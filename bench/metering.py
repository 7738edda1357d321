"""What the metered door costs a call, beside the bare SDK and beside inspect_ai, on one server, paired in one run.

1,000 chat completions at 100 at once against a loopback server in its own process that takes 1 s for each: the ideal is
10 s. Every side runs in a process of its own; its CPU time (all threads) and wall time are taken around the calls. The
door is wired as in a live run: durable ledger, real prices, real key ring and scrubber. Then the burst: 1,000 callers
at a barrier in 8 processes, under a cap for half of them.

inspect_ai is installed into ``build/bench-venv``; without it the comparison says so and goes on.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

CALLS, AT_ONCE, LATENCY_S, ROUNDS = 1_000, 100, 1.0, 3
IDEAL_S = CALLS / AT_ONCE * LATENCY_S
MOST_WALL, MOST_CPU = 1.05, 1.5  # aims, as ratios to the bare SDK
PROCESSES, CALLERS = 8, 125
MODEL = "gpt-5.5"
REPO = Path(__file__).resolve().parents[1]
BENCH_VENV = REPO / "build" / "bench-venv"


def prompt(number: int) -> str:
    """A task of some hundred words."""
    return f"Task {number}. " + "Write a Python function that returns what the tests ask for. " * 20


@contextmanager
def server(folder: Path, latency_s: float) -> Iterator[tuple[str, Path]]:
    """URL and bill of a server in a process of its own."""
    bill = folder / "bill.jsonl"
    command = [sys.executable, "-m", "tests.metering.servers", "--latency", str(latency_s), "--bill", str(bill)]
    process = subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}", bill
    finally:
        process.kill()
        process.communicate()


def measured(work: Any) -> dict[str, float]:
    """Wall and CPU seconds of a piece of work."""
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return {"wall_s": time.perf_counter() - begin, "cpu_s": cpu}


async def asked(client: Any, headers: Any) -> None:
    """All calls, so many at once, with the SDK's own method."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with gate:
            answer = await client.chat.completions.create(
                model=MODEL,
                messages=[{"role": "user", "content": prompt(number)}],
                max_completion_tokens=2_000,
                extra_headers=headers(number),
            )
            assert answer.choices[0].message.content

    await asyncio.gather(*(one(number) for number in range(CALLS)))


def bare(url: str, _: Path) -> dict[str, float]:
    """The SDK as it is, retries off."""
    import httpx2  # noqa: PLC0415
    import openai  # noqa: PLC0415

    async def main() -> None:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
        async with httpx2.AsyncClient(limits=limits, timeout=60) as http:
            client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, http_client=http)
            await asked(client, lambda _: {})

    return measured(lambda: asyncio.run(main()))


def door(url: str, folder: Path) -> dict[str, float]:
    """The same SDK behind the door."""
    sys.path.insert(0, str(REPO))
    import openai  # noqa: F401, PLC0415 - imported outside of what is measured, as for the bare side

    from pytest_fusion_audit.metering.clients import openai_client  # noqa: PLC0415
    from pytest_fusion_audit.metering.scope import HEADER, Scope  # noqa: PLC0415

    def scope(number: int) -> dict[str, str]:
        return {HEADER: Scope(phase="3", arm="member:gpt", stage="panel", task=f"bench/{number}").header()}

    calls, transport = opened(url, folder, cap=10**12)

    async def main() -> None:
        client = openai_client(transport, base_url="https://api.openai.com/v1")
        await asked(client, scope)
        await client.close()
        await transport.aclose()

    figures = measured(lambda: asyncio.run(main()))
    account = calls.ledger.balance()
    assert (account.calls, account.reserved, account.orphaned, account.estimated) == (CALLS, 0, 0, 0)
    calls.close()
    return figures


def opened(url: str, folder: Path, *, cap: int) -> tuple[Any, Any]:
    """Calls and transport as a live run has them, but for the address that is called in the end."""
    import httpx2  # noqa: PLC0415

    from pytest_fusion_audit.metering.calls import Calls  # noqa: PLC0415
    from pytest_fusion_audit.metering.keys import KeyRing  # noqa: PLC0415
    from pytest_fusion_audit.metering.lanes import Lanes  # noqa: PLC0415
    from pytest_fusion_audit.metering.ledger import Limits  # noqa: PLC0415
    from pytest_fusion_audit.metering.prices import PriceBook  # noqa: PLC0415
    from pytest_fusion_audit.metering.pricing import DoorPricing  # noqa: PLC0415
    from pytest_fusion_audit.metering.transport import MeteredTransport  # noqa: PLC0415

    inner = Lanes()
    port = int(url.rpartition(":")[2])

    class Redirected(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            request.url = request.url.copy_with(scheme="http", host="127.0.0.1", port=port)
            return await inner.handle_async_request(request)

        async def aclose(self) -> None:
            await inner.aclose()

    keys = KeyRing({name: f"sk-{kind}-EXAMPLEofNOvalue0123456789" for name, kind in _KEYS.items()})
    pricing = DoorPricing(PriceBook(), lambda _: "openai")
    calls = Calls(folder / "calls", Limits(total=cap), "bench")
    return calls, MeteredTransport(calls, Redirected(), pricing, keys, scrubber=keys.scrubber)


_KEYS = {"OPENAI_API_KEY": "proj", "ANTHROPIC_API_KEY": "ant"}


def inspect(url: str, folder: Path) -> dict[str, float]:
    """inspect_ai on the same prompts: one sample each, generation only."""
    from inspect_ai import Task, eval  # noqa: A004, PLC0415
    from inspect_ai.dataset import MemoryDataset, Sample  # noqa: PLC0415
    from inspect_ai.model import GenerateConfig, get_model  # noqa: PLC0415
    from inspect_ai.solver import generate  # noqa: PLC0415

    config = GenerateConfig(max_connections=AT_ONCE, max_tokens=2_000, max_retries=0)
    model = get_model(f"openai/{MODEL}", base_url=f"{url}/v1", api_key="k", config=config, responses_api=False)
    task = Task(dataset=MemoryDataset([Sample(input=prompt(number)) for number in range(CALLS)]), solver=generate())

    def work() -> None:
        [log] = eval(
            task, model=model, max_samples=AT_ONCE, display="none", log_dir=str(folder / "logs"), log_format="eval"
        )
        assert log.status == "success", log.error

    return measured(work)


SIDES = {"bare": bare, "door": door, "inspect": inspect}


def bench_python() -> Path | None:
    """Python of the bench environment, made when it is not there; None when inspect_ai cannot be had."""
    python = BENCH_VENV / "bin" / "python"
    if not python.exists():
        venv.create(BENCH_VENV, with_pip=True)
    known = subprocess.run([python, "-c", "import inspect_ai, openai"], capture_output=True, check=False)
    if known.returncode:
        install = [python, "-m", "pip", "install", "--quiet", "inspect_ai", "openai"]
        made = subprocess.run(install, capture_output=True, text=True, check=False)
        if made.returncode:
            last = (made.stderr.strip().splitlines() or ["no reason given"])[-1]
            print(f"  inspect_ai cannot be installed here ({last}); compared with the bare SDK only")
            return None
    return python


def taken(python: Path, side: str, url: str, folder: Path) -> dict[str, float]:
    """Run one side in a process of its own."""
    folder.mkdir(parents=True)
    done = subprocess.run(
        [python, __file__, side, url, str(folder)], cwd=REPO, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{side}: {done.stderr[-3000:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def compare(folder: Path) -> bool:
    """All sides, round by round; whether the door is within its aims."""
    pythons = {"bare": Path(sys.executable), "door": Path(sys.executable)}
    if (other := bench_python()) is not None:
        pythons["inspect"] = other
    rounds: list[dict[str, dict[str, float]]] = []
    with server(folder, LATENCY_S) as (url, _):
        for number in range(ROUNDS):
            pair = {side: taken(python, side, url, folder / f"{number}-{side}") for side, python in pythons.items()}
            rounds.append(pair)
    print(f"{CALLS:,} calls, {AT_ONCE} at once, {LATENCY_S:g} s each, {ROUNDS} rounds; ideal wall {IDEAL_S:.1f} s")
    print("            wall s   wall/ideal   wall/bare              CPU ms a call   CPU/bare")
    ratios: dict[tuple[str, str], float] = {}
    for side in pythons:
        figures = {name: [each[side][name] for each in rounds] for name in ("wall_s", "cpu_s")}
        shown = {}
        for name, values in figures.items():
            paired = [value / each["bare"][name] for value, each in zip(values, rounds, strict=True)]
            ratios[side, name] = statistics.median(paired)
            shown[name] = f"{statistics.median(paired):.2f} [{min(paired):.2f}, {max(paired):.2f}]"
        wall, cpu = statistics.median(figures["wall_s"]), statistics.median(figures["cpu_s"]) / CALLS * 1e3
        print(
            f"  {side:8}  {wall:6.2f}   {wall / IDEAL_S:10.3f}   {shown['wall_s']:20}   {cpu:13.2f}   {shown['cpu_s']}"
        )
    within = ratios["door", "wall_s"] <= MOST_WALL and ratios["door", "cpu_s"] <= MOST_CPU
    print(f"  aims: wall <= {MOST_WALL} x bare, CPU <= {MOST_CPU} x bare: {'met' if within else 'NOT MET'}")
    return within


def caller_process(number: int, meeting: tuple[Any, Any], url: str, folder: str, cap: int) -> None:
    """One process of the burst: its callers ask once each, all at the barrier's moment."""
    sys.path.insert(0, str(REPO))
    from pytest_fusion_audit.metering.ledger import CostLimitExceeded  # noqa: PLC0415
    from pytest_fusion_audit.metering.scope import HEADER, Scope  # noqa: PLC0415
    from tests.metering.doors import FlatPrices  # noqa: PLC0415

    barrier, results = meeting
    calls, transport = opened(url, Path(folder), cap=cap)
    transport.pricing = FlatPrices(worst=1_000, actual=1_000)

    async def main() -> tuple[int, int]:
        import httpx2  # noqa: PLC0415

        async with httpx2.AsyncClient(transport=transport, timeout=60) as client:

            async def one(caller: int) -> bool:
                headers = {HEADER: Scope(phase="3", task=f"{number}/{caller}").header()}
                body = {"model": MODEL, "messages": [{"role": "user", "content": f"{number}/{caller}"}]}
                try:
                    answer = await client.post("https://api.openai.com/v1/chat/completions", json=body, headers=headers)
                except CostLimitExceeded:
                    return False
                return answer.status_code == 200

            barrier.wait()
            passed = await asyncio.gather(*(one(caller) for caller in range(CALLERS)))
        return sum(passed), CALLERS - sum(passed)

    try:
        results.put(asyncio.run(main()))
    finally:
        calls.close()


def burst(folder: Path) -> bool:
    """The burst; whether exactly as many passed as fit."""
    context = multiprocessing.get_context("spawn")
    fit = PROCESSES * CALLERS // 2
    barrier, results = context.Barrier(PROCESSES + 1), context.Queue()
    (folder / "burst").mkdir()
    with server(folder / "burst", 0.0) as (url, bill):
        arguments = ((barrier, results), url, str(folder / "burst"), fit * 1_000 + 999)
        processes = [context.Process(target=caller_process, args=(n, *arguments)) for n in range(PROCESSES)]
        for process in processes:
            process.start()
        barrier.wait()
        begin = time.perf_counter()
        found = [results.get() for _ in processes]
        seconds = time.perf_counter() - begin
        for process in processes:
            process.join()
        billed = sum(json.loads(line)["billed"] for line in bill.read_text().splitlines())
    passed = sum(each[0] for each in found)
    print(f"burst: {PROCESSES * CALLERS:,} callers at a barrier in {PROCESSES} processes, a cap for {fit}")
    print(
        f"  passed {passed}, refused {sum(each[1] for each in found)}, billed by the server {billed}, {seconds:.1f} s"
    )
    return passed == fit == billed


def main() -> None:
    """Run both, or (with arguments) one side of the comparison."""
    if len(sys.argv) > 1:
        side, url, folder = sys.argv[1:]
        print(json.dumps(SIDES[side](url, Path(folder))))
        return
    # Not in /tmp where that is memory: the ledger is to be durable.
    (REPO / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=REPO / "build") as folder:
        exact = burst(Path(folder))
        within = compare(Path(folder))
    if not exact:
        raise SystemExit("the burst let another number pass than fit")
    if not within:
        print("  (aims are for an idle machine of 2 cores)")


if __name__ == "__main__":
    main()
