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
# More parts than cores: some take long.
PARTS = 64
LIMIT = 240
OPINFO = "opinfo::operations_answer_as_pytorch_does"
EXAMPLES = "examples::examples_of_rows_run_on_a_gpu"
TESTS = [
    "late::",
    "golden::",
    "semantics::scripts_say_what_they_said_in_every_way",
]
# These look at what the whole device does: nothing may run beside them.
ALONE = ["cuda_device::"]


def start(it, tscript, words, more, core=None, before=()):
    kept = {"TSCRIPT_TEST_DEVICES": "cuda", "TSCRIPT_ROOT": str(ROOT), "TSCRIPT_PROGRAM": tscript}
    command = ["taskset", "-c", str(core)] if core is not None else []
    begin = time.perf_counter()
    try:
        done = subprocess.run(
            [*command, *before, it, *words],
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


def spread(it, tscript, jobs):
    """Runs jobs, `(words, environment, command before)`, each on a core of its own; gives them with what came of them."""
    home = os.environ.get("XDG_CACHE_HOME") or tempfile.mkdtemp(prefix="tscript-kernels-")
    cores = queue.Queue()
    for core in sorted(os.sched_getaffinity(0)):
        cores.put(core)

    def run(job):
        words, more, before = job
        core = cores.get()
        try:
            return job, start(it, tscript, words, {"XDG_CACHE_HOME": home, **more}, core, before)
        finally:
            cores.put(core)

    with concurrent.futures.ThreadPoolExecutor(cores.qsize()) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, job) for job in jobs]):
            (words, more, before), (code, text, seconds) = done.result()
            told = " ".join(value for name, value in more.items() if name != "TSCRIPT_OPINFO")
            print(f"  {' '.join(words)} {told}: exit {code}, {seconds:.0f} s", flush=True)
            yield words, more, before, code, text


def tests(text):
    """Passed and failed tests of a run, and what the failed ones said."""
    summed = re.search(r"(\d+) passed; (\d+) failed", text)
    passed, failed = map(int, summed.groups()) if summed else (0, 1)
    told = re.search(r"\nfailures:\n(.*?)\nfailures:\n", text, re.S)
    return passed, failed, (told.group(1) if told else text[-3000:]) if failed else ""


def conformance(it, tscript, only=""):
    """Rows of the table, `(what, passed, failed)`, and what failed."""
    it = str(pathlib.Path(it).resolve())
    jobs = [([test], {}, ()) for test in TESTS if test.startswith(only)]
    if EXAMPLES.startswith(only):
        jobs += [(["--exact", EXAMPLES], {"TSCRIPT_EXAMPLES_PART": f"{n}/8"}, ()) for n in range(8)]
    if OPINFO.startswith(only):
        for n in range(PARTS):
            more = {"TSCRIPT_OPINFO_DEVICE": "cuda", "TSCRIPT_OPINFO_PART": f"{n}/{PARTS}"}
            jobs.append((["--exact", OPINFO, "--nocapture"], more, ()))
    sums, cases, problems = {}, {}, []
    for words, more, _, code, text in spread(it, tscript, jobs):
        if "TSCRIPT_OPINFO_PART" not in more:
            passed, failed, told = tests(text)
            name = words[-1]
            sums[name] = [a + b for a, b in zip(sums.get(name, [0, 0]), (passed, failed))]
            problems += [f"{name}: exit {code}\n{told}"] if failed else []
            continue
        for tier, *counts in re.findall(
            r"^(\w+): .* files whole; (\d+) cases passed, (\d+) failed, (\d+) unsupported", text, re.M
        ):
            cases[tier] = [a + int(b) for a, b in zip(cases.get(tier, [0, 0, 0]), counts)]
        said = re.findall(r"^[\w\-]+#\d+: .*$", text, re.M)
        problems += said
        if code and not said:
            problems.append(f"opinfo {more['TSCRIPT_OPINFO_PART']}: exit {code}\n{text[-1500:]}")
            sums["opinfo parts that ended early"] = [0, sums.get("opinfo parts that ended early", [0, 0])[1] + 1]
    rows = [(name, passed, failed) for name, (passed, failed) in sorted(sums.items())]
    rows += [(f"opinfo {tier}", passed, failed + missing) for tier, (passed, failed, missing) in sorted(cases.items())]
    if cases:
        rows.append(("opinfo, failed on the GPU only", 0, sum(1 for line in problems if re.match(r"[\w\-]+#\d+: ", line))))
    for test in ALONE:
        if test.startswith(only):
            code, text, _ = start(it, tscript, [test], {})
            passed, failed, told = tests(text)
            rows.append((test, passed, failed))
            problems += [f"{test}: exit {code}\n{told}"] if failed else []
    return rows, problems


# Rows whose kernels exchange values through shared memory: what a checker of races can say something about.
SHARING = """sum mean prod amax amin aminmax argmax argmin all any var std var_mean logsumexp norm vector_norm nansum
count_nonzero softmax log_softmax layer_norm rms_norm group_norm instance_norm batch_norm cross_entropy nll_loss cumsum cumprod
cummax cummin logcumsumexp sort argsort msort topk kthvalue median nanmedian mode unique unique_consecutive nonzero masked_select
masked_scatter repeat_interleave bincount histc searchsorted multinomial matmul bmm mm linear conv1d conv2d conv3d
conv_transpose2d max_pool2d avg_pool2d scaled_dot_product_attention transpose embedding index_add scatter_add cholesky
lu_factor solve inv det qr solve_triangular ctc_loss""".split()


def sanitized(it, tscript, parts=8, whole=0):
    """Every example of every row under NVIDIA's checkers of memory and of races: rows of the table, and what failed. `whole`:
    all of OpInfo in so many parts under the first, and its rows that share memory under the second."""
    it, jobs = str(pathlib.Path(it).resolve()), []
    for tool in ["memcheck", "racecheck"]:
        before = ("compute-sanitizer", "--tool", tool, "--error-exitcode", "9", "--report-api-errors", "no")
        for n in range(parts):
            jobs.append((["--exact", EXAMPLES], {"TSCRIPT_EXAMPLES_PART": f"{n}/{parts}"}, before))
        for n in range(whole):
            more = {"TSCRIPT_OPINFO_DEVICE": "cuda", "TSCRIPT_OPINFO_PART": f"{n}/{whole}"}
            if tool == "racecheck":
                more["TSCRIPT_OPINFO"] = ",".join(SHARING)
            jobs.append((["--exact", OPINFO], more, before))
    sums, problems = {}, []
    for words, more, before, code, text in spread(it, tscript, jobs):
        name = f"{before[2]}, {'OpInfo' if 'TSCRIPT_OPINFO_PART' in more else 'examples of all rows'}"
        sums[name] = [a + b for a, b in zip(sums.get(name, [0, 0]), (code == 0, code != 0))]
        problems += [f"{name} {more}: exit {code}\n{text[:1500]}\n..\n{text[-2500:]}"] if code else []
    return [(name, *counts) for name, counts in sums.items()], problems
