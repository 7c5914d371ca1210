"""The integration tests that speak of GPUs, on a real one, in as many processes as there are cores.

A process gets one core, so that its thread pool has one thread, and a limit of time. All share one folder of
compiled kernels. What is known to fail on the CPU (`expected_failures.txt`) may fail here too, and nothing else.
"""
import concurrent.futures
import os
import pathlib
import queue
import re
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# More parts than cores: some files take long.
PARTS = 64
LIMIT = 240
OPINFO = "opinfo::operations_answer_as_pytorch_does"
TESTS = [
    "late::",
    "golden::",
    "examples::examples_of_rows_run_on_a_gpu",
    "semantics::scripts_say_what_they_said_in_every_way",
]
# These look at what the whole device does: nothing may run beside them.
ALONE = ["cuda_device::"]


def start(it, tscript, words, more, core=None):
    kept = {"TSCRIPT_TEST_DEVICES": "cuda", "TSCRIPT_ROOT": str(ROOT), "TSCRIPT_PROGRAM": tscript}
    command = ["taskset", "-c", str(core)] if core is not None else []
    begin = time.perf_counter()
    try:
        done = subprocess.run(
            [*command, it, *words],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT,
            cwd=ROOT,
            env={**os.environ, **kept, **more},
        )
        return done.returncode, done.stdout + done.stderr, time.perf_counter() - begin
    except subprocess.TimeoutExpired as late:
        told = b"".join(part for part in (late.stdout, late.stderr) if part).decode(errors="replace")
        return 124, f"{told}\nstopped after {LIMIT} s", LIMIT


def tests(text):
    """Passed and failed tests of a run, and what the failed ones said."""
    summed = re.search(r"(\d+) passed; (\d+) failed", text)
    passed, failed = map(int, summed.groups()) if summed else (0, 1)
    told = re.search(r"\nfailures:\n(.*?)\nfailures:\n", text, re.S)
    return passed, failed, (told.group(1) if told else text[-3000:]) if failed else ""


def conformance(it, tscript, only=""):
    """Rows of the table, `(what, passed, failed)`, and what failed."""
    it = str(pathlib.Path(it).resolve())
    home = os.environ.get("XDG_CACHE_HOME") or tempfile.mkdtemp(prefix="tscript-kernels-")
    cores = queue.Queue()
    for core in sorted(os.sched_getaffinity(0)):
        cores.put(core)

    def job(words, more):
        core = cores.get()
        try:
            return words, more, start(it, tscript, words, {"XDG_CACHE_HOME": home, **more}, core)
        finally:
            cores.put(core)

    jobs = [([test], {}) for test in TESTS if test.startswith(only)]
    if OPINFO.startswith(only):
        of_gpu = {"TSCRIPT_OPINFO_DEVICE": "cuda"}
        jobs += [([OPINFO, "--nocapture"], {**of_gpu, "TSCRIPT_OPINFO_PART": f"{n}/{PARTS}"}) for n in range(PARTS)]
    rows, cases, problems, times = [], {}, [], []
    with concurrent.futures.ThreadPoolExecutor(cores.qsize()) as pool:
        for words, more, (code, text, seconds) in pool.map(lambda told: job(*told), jobs):
            part = more.get("TSCRIPT_OPINFO_PART", "")
            print(f"  {words[0]} {part}: exit {code}, {seconds:.0f} s", flush=True)
            times.append((seconds, f"{words[0]} {part}"))
            if not part:
                passed, failed, told = tests(text)
                rows.append((words[0], passed, failed))
                problems += [f"{words[0]}: exit {code}\n{told}"] if failed else []
                continue
            for tier, passed, failed, missing in re.findall(
                r"^(\w+): .* files whole; (\d+) cases passed, (\d+) failed, (\d+) unsupported", text, re.M
            ):
                sums = cases.setdefault(tier, [0, 0, 0])
                for at, count in enumerate((passed, failed, missing)):
                    sums[at] += int(count)
            said = re.findall(r"^[\w\-]+#\d+: .*$", text, re.M)
            problems += said
            if code and not said:
                problems.append(f"opinfo part {part}: exit {code}\n{text[-1500:]}")
                cases.setdefault("ended early", [0, 0, 0])[1] += 1
    unexpected = sum(1 for line in problems if re.match(r"[\w\-]+#\d+: ", line))
    for tier, (passed, failed, missing) in sorted(cases.items()):
        rows.append((f"opinfo {tier}", passed, failed + missing))
    if cases:
        rows.append(("opinfo, failed on the GPU only", 0, unexpected))
    for test in ALONE:
        if test.startswith(only):
            code, text, seconds = start(it, tscript, [test], {"XDG_CACHE_HOME": home})
            passed, failed, told = tests(text)
            rows.append((test, passed, failed))
            problems += [f"{test}: exit {code}\n{told}"] if failed else []
            times.append((seconds, test))
    slowest = ", ".join(f"{name} {seconds:.0f} s" for seconds, name in sorted(times, reverse=True)[:6])
    print(f"conformance: the slowest processes were {slowest}")
    return rows, problems
