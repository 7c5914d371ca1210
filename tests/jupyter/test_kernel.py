"""The kernel as Jupyter uses it: `python tests/jupyter/test_kernel.py PROGRAM` with the packages of requirements.txt.

Installs the kernel that PROGRAM is into a folder of its own, starts it through jupyter_client, and drives it through every
request. The checks of jupyter_kernel_test come on top, and a notebook that nbclient runs. `tests/it/jupyter.rs` starts it.
"""

import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from queue import Empty

import jupyter_kernel_test
import nbclient
import nbformat
import zmq
from jupyter_client.manager import KernelManager

PROGRAM = Path(os.environ.get("TSCRIPT", sys.argv[1] if len(sys.argv) > 1 else "target/debug/tscript")).resolve()
FOLDER = tempfile.TemporaryDirectory()
# How long an answer may take on a machine that is busy.
PATIENCE = 60

os.environ["JUPYTER_PATH"] = str(Path(FOLDER.name) / "share" / "jupyter")
# For warnings, which are of accesses that nothing orders.
os.environ["TSCRIPT_SIMULATE_GPUS"] = "1"
os.environ["JUPYTER_RUNTIME_DIR"] = str(Path(FOLDER.name) / "runtime")


def setUpModule():
    subprocess.run([PROGRAM, "jupyter", "install", "--prefix", FOLDER.name], check=True, stdout=subprocess.DEVNULL)


def tearDownModule():
    FOLDER.cleanup()


class Conversation(unittest.TestCase):
    """A kernel for all tests of a class."""

    ipc = False

    @classmethod
    def setUpClass(cls):
        cls.complaints = open(Path(FOLDER.name) / f"{cls.__name__}.txt", "w+")
        cls.manager = KernelManager(kernel_name="tscript", transport="ipc" if cls.ipc else "tcp")
        cls.manager.start_kernel(stderr=cls.complaints)
        cls.client = cls.manager.blocking_client()
        cls.client.start_channels()
        cls.client.wait_for_ready(timeout=PATIENCE)

    @classmethod
    def tearDownClass(cls):
        cls.client.stop_channels()
        cls.manager.shutdown_kernel()
        cls.complaints.close()

    def shell(self, request):
        """The reply to a request of the shell."""
        return self.reply_of(self.client.get_shell_msg, request)

    def control(self, request):
        return self.reply_of(self.client.get_control_msg, request)

    def reply_of(self, read, request):
        while True:
            reply = read(timeout=PATIENCE)
            if reply["parent_header"].get("msg_id") == request:
                return reply["content"]

    def broadcasts(self, request):
        """What is broadcast for a request, from `busy` to `idle`, without the two."""
        found = []
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["msg_type"] == "status":
                if message["content"]["execution_state"] == "idle":
                    self.assertEqual(found.pop(0), "busy")
                    return found
                found.append(message["content"]["execution_state"])
            else:
                found.append((message["msg_type"], message["content"]))

    def run_cell(self, code, **options):
        """The reply to a cell, and what it shows."""
        request = self.client.execute(code, **options)
        shown = self.broadcasts(request)
        return self.shell(request), [part for part in shown if part[0] != "execute_input"]

    def until(self, request, text):
        """Waits until a running cell has printed a text."""
        printed = ""
        while text not in printed:
            message = self.client.get_iopub_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") == request and message["msg_type"] == "stream":
                printed += message["content"]["text"]

    def printed(self, shown, name="stdout"):
        return "".join(part["text"] for kind, part in shown if kind == "stream" and part["name"] == name)

    def value(self, code):
        """The text of the value of a cell."""
        reply, shown = self.run_cell(code)
        self.assertEqual(reply["status"], "ok", reply)
        return [part["data"]["text/plain"] for kind, part in shown if kind == "execute_result"][0]


class Cells(Conversation):
    def test_the_kernel_tells_what_it_is(self):
        info = self.shell(self.client.kernel_info())
        self.assertEqual(info["status"], "ok")
        self.assertEqual(info["language_info"]["name"], "tscript")
        self.assertEqual(info["language_info"]["file_extension"], ".rhai")
        self.assertTrue(info["protocol_version"].startswith("5."))
        self.assertEqual(self.shell(self.client.comm_info())["comms"], {})

    def test_values_are_text_and_html(self):
        reply, shown = self.run_cell("let x = tensor([[1.0, 2.0], [3.0, 4.0]]); x")
        self.assertEqual([kind for kind, _ in shown], ["execute_result"])
        self.assertEqual(shown[0][1]["execution_count"], reply["execution_count"])
        data = shown[0][1]["data"]
        self.assertEqual(data["text/plain"], "tensor([[1., 2.],\n        [3., 4.]])\n    [2, 2] f32 cpu")
        self.assertIn("<th>1</th><td>3.</td><td>4.</td>", data["text/html"])
        self.assertEqual(self.value("_ + x.sum()")[:26], "tensor([[11., 12.],\n      ")
        self.assertEqual(self.value("1 + 1"), "2")
        reply, shown = self.run_cell("let y = 3;")
        self.assertEqual((reply["status"], shown), ("ok", []))

    def test_output_comes_in_order_and_while_the_cell_runs(self):
        _, shown = self.run_cell("print(1); print(2); show(eye(2)); print(3); 4")
        self.assertEqual([kind for kind, _ in shown], ["stream", "display_data", "stream", "execute_result"])
        self.assertEqual(shown[0][1], {"name": "stdout", "text": "1\n2\n"})
        request = self.client.execute("print(\"begun\"); loop { }")
        self.until(request, "begun")
        self.control(self.interrupt())
        self.assertEqual(self.shell(request)["ename"], "E0803")
        self.broadcasts_until_idle(request)

    def test_much_output_is_complete(self):
        _, shown = self.run_cell("for i in 0..20000 { print(i); }")
        self.assertEqual(self.printed(shown), "".join(f"{i}\n" for i in range(20000)))
        self.assertLess(len(shown), 500)

    def test_progress_is_on_the_error_stream(self):
        _, shown = self.run_cell("for i in progress(0..50, #{desc: \"train\"}) { }")
        self.assertTrue(self.printed(shown, "stderr").endswith("\rtrain 100% 50/50\n"), shown)

    def test_errors_have_code_color_and_the_line_of_the_cell(self):
        reply, shown = self.run_cell("let a = zeros([2, 3]);\na @ a", store_history=True)
        self.assertEqual((reply["status"], reply["ename"]), ("error", "E0201"))
        self.assertEqual([kind for kind, _ in shown], ["error"])
        self.assertEqual(shown[0][1]["evalue"], reply["evalue"])
        text = "\n".join(reply["traceback"])
        self.assertIn("\x1b[31m", text)
        self.assertIn(f"cell [{reply['execution_count']}]:2:", text)
        self.assertEqual(self.value("a.shape"), "[2, 3]")
        reply, _ = self.run_cell("let = 3")
        self.assertEqual(reply["ename"], "E0101")

    def test_late_errors_are_those_of_the_cell(self):
        reply, shown = self.run_cell("let late = arange(10)[tensor([11])];")
        self.assertEqual((reply["status"], reply["ename"]), ("error", "E0401"))

    def test_warnings_are_text_and_html(self):
        race = "let a = randn([100, 100], #{device: \"cuda\"}); let b = with_stream(stream()) { a.sum() }; b.device"
        reply, shown = self.run_cell(race)
        self.assertEqual(reply["status"], "ok")
        [warning] = [part["data"] for kind, part in shown if kind == "display_data"]
        self.assertTrue(warning["text/plain"].startswith("warning[E0501]: "), warning)
        self.assertIn(f"cell [{reply['execution_count']}]:1:", warning["text/plain"])
        self.assertTrue(warning["text/html"].startswith("<pre><span style="), warning)

    def test_pictures_and_curves_are_images(self):
        _, shown = self.run_cell("show(rand([8, 8])); plot([1.0, 3.0, 2.0], #{title: \"loss\"});")
        self.assertEqual([kind for kind, _ in shown], ["display_data"] * 2)
        for _, part in shown:
            self.assertTrue(base64.b64decode(part["data"]["image/png"]).startswith(b"\x89PNG\r\n"))
            self.assertGreater(len(part["data"]["text/plain"]), 0)
        self.assertEqual(shown[0][1]["metadata"]["image/png"], {"width": 256, "height": 256})

    def test_commands_and_habits_are_cells(self):
        self.run_cell("let big = zeros([10, 10]);")
        reply, shown = self.run_cell(":vars")
        self.assertEqual(reply["status"], "ok")
        self.assertIn("big", self.printed(shown))
        _, shown = self.run_cell(":help softmax")
        self.assertIn("softmax(", self.printed(shown))
        _, shown = self.run_cell("%time big + 1")
        self.assertIn("median", self.printed(shown))
        _, shown = self.run_cell(":plan big + 1")
        self.assertIn("pass", self.printed(shown))
        reply, _ = self.run_cell(":nosuch")
        self.assertEqual(reply["status"], "error")

    def test_commands_stand_among_other_lines(self):
        reply, shown = self.run_cell("let among = [1, 2];\n:type among\namong.len()\n:nosuch\nprint(\"not run\");")
        self.assertEqual([kind for kind, _ in shown], ["stream", "execute_result", "error"])
        self.assertEqual((shown[0][1]["text"], reply["status"]), ("array\n", "error"))
        reply, _ = self.run_cell("\n:vars\n\nnothing_there")
        self.assertIn(f"cell [{reply['execution_count']}]:4:1", "\n".join(reply["traceback"]))

    def test_silent_cells_show_nothing_and_are_not_counted(self):
        before = self.run_cell("1")[0]["execution_count"]
        request = self.client.execute("print(1); show(eye(2)); 2", silent=True)
        self.assertEqual(self.broadcasts(request), [])
        self.assertEqual(self.shell(request)["status"], "ok")
        self.assertEqual(self.run_cell("1", store_history=False)[0]["execution_count"], before)
        self.assertEqual(self.run_cell("1")[0]["execution_count"], before + 1)

    def test_expressions_are_evaluated_each_for_itself(self):
        asked = {"good": "[1, 2].len() + 1", "bad": "nothing_there", "none": "()"}
        reply, _ = self.run_cell("let z = 1;", user_expressions=asked)
        answers = reply["user_expressions"]
        self.assertEqual(answers["good"], {"status": "ok", "data": {"text/plain": "3"}, "metadata": {}})
        self.assertEqual((answers["bad"]["status"], answers["bad"]["ename"]), ("error", "E0102"))
        self.assertEqual(answers["none"]["data"], {})

    def test_a_cell_that_leaves_asks_the_frontend_to(self):
        reply, _ = self.run_cell("exit(3)")
        self.assertEqual(reply["payload"], [{"source": "ask_exit", "keepkernel": False}])
        self.assertEqual(self.value("1 + 2"), "3")

    def test_completion_counts_characters(self):
        self.run_cell("let word = tensor([1.0]);")
        reply = self.shell(self.client.complete("let s = \"wörter 🦀\"; word.rel"))
        self.assertIn("relu(", reply["matches"])
        self.assertEqual((reply["cursor_start"], reply["cursor_end"]), (25, 28))
        reply = self.shell(self.client.complete("wor + \"é\"", cursor_pos=3))
        self.assertEqual(reply["matches"], ["word"])
        self.assertEqual(self.shell(self.client.complete(":pl"))["matches"], ["plan "])

    def test_inspection_has_the_documentation(self):
        reply = self.shell(self.client.inspect("softmax(x, 0)", 4))
        self.assertTrue(reply["found"])
        self.assertIn("softmax(", reply["data"]["text/plain"])
        self.assertIn("<pre>", reply["data"]["text/html"])
        self.assertTrue(self.shell(self.client.inspect("sum(x, ", 7))["found"])
        self.assertFalse(self.shell(self.client.inspect("nothing_there", 3))["found"])

    def test_cells_may_be_unfinished(self):
        ask = lambda code: self.shell(self.client.is_complete(code))
        self.assertEqual(ask("let x = 1"), {"status": "complete"})
        self.assertEqual(ask("fn f(x) {"), {"status": "incomplete", "indent": "    "})

    def test_history_is_told(self):
        for code in ["let h1 = 1;", "let h2 = 2;", "h1 + h2"]:
            count = self.run_cell(code)[0]["execution_count"]
        tail = self.shell(self.client.history(hist_access_type="tail", n=2))["history"]
        self.assertEqual(tail, [[0, count - 1, "let h2 = 2;"], [0, count, "h1 + h2"]])
        found = self.shell(self.client.history(hist_access_type="search", pattern="let h?*", n=9))["history"]
        self.assertEqual([entry[2] for entry in found], ["let h1 = 1;", "let h2 = 2;"])
        last = dict(hist_access_type="range", session=0, start=count, stop=count + 1, output=True)
        self.assertEqual(self.shell(self.client.history(**last))["history"], [[0, count, ["h1 + h2", "3"]]])

    def test_cells_after_an_error_are_not_run(self):
        codes = ["let order = [];", "order.push(1);", "throw \"stop\"", "order.push(2);", "order.push(3);"]
        requests = [self.client.execute(code) for code in codes]
        asked = self.client.is_complete("1")
        replies = [self.shell(request) for request in requests]
        self.assertEqual([reply["status"] for reply in replies], ["ok", "ok", "error", "aborted", "aborted"])
        self.assertEqual(self.shell(asked)["status"], "complete")
        self.assertEqual(self.value("order"), "[1]")
        requests = [self.client.execute(code, stop_on_error=False) for code in ["throw 1", "order.push(4);"]]
        self.assertEqual([self.shell(request)["status"] for request in requests], ["error", "ok"])
        self.assertEqual(self.value("order"), "[1, 4]")

    def interrupt(self):
        message = self.client.session.msg("interrupt_request", {})
        self.client.control_channel.send(message)
        return message["header"]["msg_id"]

    def broadcasts_until_idle(self, request):
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") == request and message["msg_type"] == "status":
                if message["content"]["execution_state"] == "idle":
                    return

    def test_a_message_stops_a_cell(self):
        self.run_cell("let kept = 7;")
        request = self.client.execute("print(\"begun\"); let i = 0; while true { i += 1; }")
        self.until(request, "begun")
        start = time.monotonic()
        self.manager.interrupt_kernel()
        reply = self.shell(request)
        self.assertLess(time.monotonic() - start, 10)
        self.assertEqual((reply["status"], reply["ename"]), ("error", "E0803"))
        self.assertEqual(self.value("kept"), "7")

    def test_a_signal_stops_a_cell(self):
        self.run_cell("let kept = 8;")
        process = self.manager.provisioner.process
        os.kill(process.pid, signal.SIGINT)  # Between cells it does nothing.
        time.sleep(1)  # On a busy machine the signal would else arrive when the next cell has begun.
        request = self.client.execute("print(\"begun\"); loop { }")
        self.until(request, "begun")
        for _ in range(4):
            os.kill(process.pid, signal.SIGINT)
        self.assertEqual(self.shell(request)["ename"], "E0803")
        self.assertEqual(self.value("kept"), "8")
        self.assertIsNone(process.poll())

    def test_the_heart_beats_while_a_cell_runs(self):
        request = self.client.execute("print(\"begun\"); loop { }")
        self.until(request, "begun")
        heart = zmq.Context.instance().socket(zmq.REQ)
        heart.connect(f"tcp://127.0.0.1:{self.client.hb_port}")
        heart.send(b"ping")
        self.assertTrue(heart.poll(10_000))
        self.assertEqual(heart.recv(), b"ping")
        heart.close()
        self.manager.interrupt_kernel()
        self.assertEqual(self.shell(request)["ename"], "E0803")

    def test_damaged_messages_are_dropped(self):
        broken = zmq.Context.instance().socket(zmq.DEALER)
        broken.connect(f"tcp://127.0.0.1:{self.client.shell_port}")
        session = self.client.session
        good = session.serialize(session.msg("kernel_info_request", {}))
        at = good.index(b"<IDS|MSG>")
        for frames in [
            [b"x"],
            [b"<IDS|MSG>"],
            [b"<IDS|MSG>", b"0" * 64, b"{}", b"{}", b"{}", b"{}"],
            [b"<IDS|MSG>", session.sign([b"{", b"{}", b"{}", b"{}"]), b"{", b"{}", b"{}", b"{}"],
            good[at : at + 2] + [b"[]"] + good[at + 3 :],
            good[at : at + 3],
            [b""] * 20,
        ]:
            broken.send_multipart(frames)
        broken.send_multipart(good)
        self.assertTrue(broken.poll(PATIENCE * 1000))
        self.assertEqual(session.deserialize(session.feed_identities(broken.recv_multipart())[1])["msg_type"], "kernel_info_reply")
        broken.close()
        self.complaints.flush()
        told = Path(self.complaints.name).read_text()
        self.assertGreaterEqual(told.count("a message was dropped"), 7)

    def test_what_is_no_zeromq_is_sent_away(self):
        import socket

        for port in [self.client.shell_port, self.client.iopub_port, self.client.hb_port]:
            with socket.create_connection(("127.0.0.1", port)) as peer:
                peer.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 10)
                peer.settimeout(PATIENCE)
                try:
                    while peer.recv(4096):
                        pass
                except ConnectionResetError:
                    pass
        self.assertEqual(self.value("40 + 2"), "42")

    def test_unknown_requests_leave_the_kernel_idle(self):
        message = self.client.session.msg("nonsense_request", {})
        self.client.shell_channel.send(message)
        self.assertEqual(self.broadcasts(message["header"]["msg_id"]), [])
        message = self.client.session.msg("comm_open", {"comm_id": "c", "target_name": "t", "data": {}})
        self.client.shell_channel.send(message)
        self.assertEqual(self.broadcasts(message["header"]["msg_id"]), [("comm_close", {"comm_id": "c", "data": {}})])
        message = self.client.session.msg("execute_request", {"code": 7})
        self.client.shell_channel.send(message)
        self.assertEqual(self.shell(message["header"]["msg_id"])["status"], "ok")

    def test_two_clients_have_one_session(self):
        other = self.manager.blocking_client()
        other.start_channels()
        other.wait_for_ready(timeout=PATIENCE)
        self.run_cell("let common = 5;")
        request = other.execute("common + 1")
        texts = []
        while True:
            message = other.get_iopub_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["msg_type"] == "execute_result":
                texts.append(message["content"]["data"]["text/plain"])
            if message["content"].get("execution_state") == "idle":
                break
        self.assertEqual(texts, ["6"])
        other.stop_channels()


class Lives(Conversation):
    """Each test ends the kernel."""

    def setUp(self):
        if not self.manager.is_alive():
            self.tearDownClass()
            self.setUpClass()

    def test_a_restart_forgets(self):
        self.run_cell("let gone = 1;")
        self.manager.restart_kernel(now=False)
        self.client.wait_for_ready(timeout=PATIENCE)
        reply, _ = self.run_cell("gone")
        self.assertEqual((reply["ename"], reply["execution_count"]), ("E0102", 1))

    def test_a_shutdown_ends_the_process(self):
        request = self.client.shutdown()
        self.assertEqual(self.control(request), {"status": "ok", "restart": False})
        self.assertEqual(self.manager.provisioner.process.wait(timeout=PATIENCE), 0)

    def test_a_shutdown_ends_a_cell(self):
        request = self.client.execute("print(\"begun\"); loop { }")
        self.client.execute("loop { }", stop_on_error=False)
        self.until(request, "begun")
        start = time.monotonic()
        asked = self.client.shutdown()
        self.assertEqual(self.control(asked)["status"], "ok")
        self.assertEqual(self.manager.provisioner.process.wait(timeout=PATIENCE), 0)
        self.assertLess(time.monotonic() - start, 10)

    def test_a_client_that_reads_nothing_holds_nothing_up(self):
        deaf = zmq.Context.instance().socket(zmq.SUB)
        deaf.setsockopt(zmq.RCVHWM, 1)
        deaf.setsockopt(zmq.SUBSCRIBE, b"")
        deaf.connect(f"tcp://127.0.0.1:{self.client.iopub_port}")
        time.sleep(0.2)
        reply, shown = self.run_cell("let line = \"x\"; for i in 0..12 { line += line; } for i in 0..5000 { print(line); }")
        self.assertEqual(reply["status"], "ok")
        self.assertEqual(len(self.printed(shown)), 5000 * 4097)
        deaf.close(linger=0)


class SocketFiles(Conversation):
    ipc = True

    def test_cells_run(self):
        self.assertEqual(self.value("6 * 7"), "42")


class Started(unittest.TestCase):
    def test_what_is_wrong_with_the_file_is_told(self):
        def complaint(path):
            run = subprocess.run([PROGRAM, "jupyter", "run", path], capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(run.returncode, 1)
            return run.stderr

        self.assertIn("E0601", complaint("/no/such/file.json"))
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write("{}")
            file.flush()
            self.assertIn("E0602", complaint(file.name))

    def test_a_port_that_is_taken_is_told(self):
        import socket

        with socket.create_server(("127.0.0.1", 0)) as taken, tempfile.NamedTemporaryFile("w") as file:
            names = ["shell_port", "iopub_port", "stdin_port", "control_port", "hb_port"]
            ports = {name: taken.getsockname()[1] for name in names}
            json.dump(ports | {"ip": "127.0.0.1", "key": "", "transport": "tcp"}, file)
            file.flush()
            run = subprocess.run([PROGRAM, "jupyter", "run", file.name], capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(run.returncode, 1)
            self.assertIn("cannot listen at tcp://127.0.0.1:", run.stderr)

    def test_a_kernel_ends_with_its_parent(self):
        start = f"""
import sys
from jupyter_client.manager import KernelManager
manager = KernelManager(kernel_name="tscript")
manager.start_kernel()
client = manager.blocking_client()
client.start_channels()
client.wait_for_ready(timeout={PATIENCE})
print(manager.provisioner.process.pid, flush=True)
import os
os._exit(0)
"""
        run = subprocess.run([sys.executable, "-c", start], stdout=subprocess.PIPE, text=True, timeout=2 * PATIENCE)
        pid = int(run.stdout)
        for _ in range(PATIENCE * 10):
            try:
                os.kill(pid, 0)
                with open(f"/proc/{pid}/stat") as stat:
                    if stat.read().rsplit(")", 1)[1].split()[0] == "Z":
                        return
            except (ProcessLookupError, FileNotFoundError):
                return
            time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)
        self.fail("the kernel lives")


class Notebook(unittest.TestCase):
    def test_a_notebook_is_executed(self):
        cells = [
            "let w = randn([3], #{requires_grad: true});\n(w * w).sum().backward();\nw.grad.shape",
            "plot([3.0, 2.0, 1.0]);",
            "print(\"done\");",
        ]
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        done = nbclient.execute(notebook, kernel_name="tscript", timeout=PATIENCE)
        nbformat.validate(done)
        outputs = [cell.outputs[0] for cell in done.cells]
        self.assertEqual(outputs[0].data["text/plain"], "[3]")
        self.assertIn("image/png", outputs[1].data)
        self.assertEqual(outputs[2].text, "done\n")
        notebook.cells.append(nbformat.v4.new_code_cell("nothing_there"))
        with self.assertRaisesRegex(nbclient.exceptions.CellExecutionError, "E0102"):
            nbclient.execute(notebook, kernel_name="tscript", timeout=PATIENCE)


class Conformance(jupyter_kernel_test.KernelTests):
    """What jupyter_kernel_test asks of every kernel, with the form of each message."""

    kernel_name = "tscript"
    language_name = "tscript"
    file_extension = ".rhai"
    code_hello_world = "print(\"hello, world\")"
    code_stderr = "for i in progress(0..3) { }"
    completion_samples = [{"text": "zero", "matches": ["zeros(", "zeros_like("]}]
    complete_code_samples = ["1", "print(\"x\")", "fn f(x) {\n    x\n}", ":vars"]
    incomplete_code_samples = ["f(1,", "fn f(x) {", "1 +"]
    code_generate_error = "throw \"wrong\""
    code_execute_result = [{"code": "6 * 7", "result": "42"}, {"code": "[1, 2]", "result": "[1, 2]"}]
    code_display_data = [{"code": "show(eye(3))", "mime": "image/png"}]
    code_history_pattern = "6*"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "softmax"
    code_clear_output = ""


del Conversation, jupyter_kernel_test

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
