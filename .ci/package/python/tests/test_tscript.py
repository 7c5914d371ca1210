"""The module as it is installed: `python -m unittest discover .ci/package/python/tests`. What needs PyTorch is left out without it."""

import gc
import io
import os
import signal
import sys
import tempfile
import threading
import time
import unittest
import warnings
from contextlib import redirect_stdout

import numpy
import tscript

try:
    import torch
except ImportError:
    torch = None

SCRIPT = """
fn double(x) { x * 2 }
fn same(x) { x }
fn fill(x) { x.fill_(7); }
fn norm(x, options) { x.sum() * options.scale }
fn both(x) { #{sum: x.sum(), list: [x, 1, "a", (), true, 2.5]} }
fn wrong(x) {
    x + ones([3])
}
fn endless() { loop { } }
fn grads(w) {
    let w = w.requires_grad_();
    let loss = (w * w).sum();
    loss.backward();
    w.grad
}
let x = 40 + 2;
print(`hello ${x}`);
"""


def loaded(**settings):
    session = tscript.Session(**settings)
    with redirect_stdout(io.StringIO()):
        session.run_text(SCRIPT)
    return tscript.Module(session)


class Values(unittest.TestCase):
    def test_values_pass_both_ways(self):
        session = loaded().session
        for value in [None, True, 7, -(2**63), 2.5, "text", [1, [2.0, "a"]], {"a": 1, "b": [None]}]:
            self.assertEqual(session.call("same", value), value)
        self.assertEqual(session.call("same", (1, 2)), [1, 2])
        self.assertEqual(session.call("same", numpy.int64(3)), 3)
        self.assertEqual(session.call("same", numpy.float32(1.5)), 1.5)
        self.assertIs(session.call("same", numpy.bool_(True)), True)
        self.assertEqual(session.eval("x + 1"), 43)
        session.set("y", 5)
        self.assertEqual(session.get("y"), 5)
        function = session.eval("|x| 3 * x")
        session.set("f", function)
        self.assertEqual(session.eval("f.call(2)"), 6)
        for value, error in [(2**64, OverflowError), (object(), TypeError), ({1: 2}, TypeError)]:
            with self.assertRaises(error):
                session.call("same", value)
        endless = []
        endless.append(endless)
        with self.assertRaises(ValueError):
            session.call("same", endless)

    def test_output_goes_where_python_writes(self):
        out = io.StringIO()
        with redirect_stdout(out):
            tscript.Session().run_text(SCRIPT)
        self.assertEqual(out.getvalue(), "hello 42\n")

    def test_a_file_and_its_arguments(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.rhai")
            with open(path, "w") as file:
                file.write('import "part" as part; let lr = arg("lr", 0.5); fn predict(x) { part::twice(x) }')
            with open(os.path.join(folder, "part.rhai"), "w") as file:
                file.write("fn twice(x) { x + x }")
            model = tscript.load(path, arguments=["--lr", "0.1"])
            self.assertEqual(model.session.get("lr"), 0.1)
            self.assertEqual(model.predict(numpy.ones(2)).tolist(), [2.0, 2.0])

    def test_errors_are_exceptions_with_the_rendered_message(self):
        model = loaded()
        with self.assertRaises(tscript.Error) as caught:
            model.wrong(numpy.ones(2, "f4"))
        error = caught.exception
        self.assertEqual((error.code, error.source, error.line), ("E0201", "script", 8))
        self.assertIn("x + ones([3])", str(error))
        self.assertIn("error[E0201]", str(error))
        # The session goes on.
        self.assertEqual(model.same(1), 1)
        with self.assertRaises(tscript.Error):
            tscript.Session(device="cuda:7", simulate_gpus=1)

    def test_warnings_are_those_of_python(self):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            text = 'let a = randn([9], #{device: "cuda"}); print(with_stream(stream()) { a.sum() }.shape);'
            with redirect_stdout(io.StringIO()):
                tscript.Session(simulate_gpus=1).run_text(text)
        self.assertTrue(any(issubclass(w.category, tscript.ScriptWarning) and "E0501" in str(w.message) for w in found))

    def test_other_threads_run_meanwhile(self):
        model = loaded()
        counted = []

        def count():
            while not stop.is_set():
                counted.append(1)
                time.sleep(0.001)

        stop = threading.Event()
        thread = threading.Thread(target=count)
        thread.start()
        model.session.eval("let sum = 0; for i in 0..3000000 { sum = sum + i; } sum")
        stop.set()
        thread.join()
        self.assertGreater(len(counted), 3)

    def test_interrupts_stop_the_script(self):
        model = loaded()
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            model.endless()
        self.assertEqual(model.same(2), 2)

    def test_a_session_is_not_used_from_its_own_output(self):
        session = tscript.Session()

        class Stream(io.StringIO):
            def write(self, text):
                try:
                    session.eval("1")
                except RuntimeError as error:
                    found.append(str(error))

        found = []
        with redirect_stdout(Stream()):
            session.run_text("print(1);")
        self.assertIn("is running", found[0])


class NumPy(unittest.TestCase):
    DTYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "?", "c8", "c16"]

    def test_all_dtypes(self):
        model = loaded()
        for name in self.DTYPES:
            x = numpy.array([[0, 1, 2], [3, 4, 5]]).astype(name)
            y = model.same(x)
            self.assertEqual(y.dtype, x.dtype, name)
            self.assertTrue((y == x).all(), name)

    def test_nothing_is_copied(self):
        model = loaded()
        x = numpy.arange(6.0).reshape(2, 3)
        y = model.session.call("same", x).numpy()
        self.assertEqual(y.__array_interface__["data"][0], x.__array_interface__["data"][0])
        model.fill(x)
        self.assertTrue((x == 7).all())
        # Out: the script's own memory.
        tensor = model.session.eval("ones([4])")
        a, b = tensor.numpy(), tensor.numpy()
        self.assertEqual(a.__array_interface__["data"][0], b.__array_interface__["data"][0])

    def test_strides_and_empty_arrays(self):
        model = loaded()
        x = numpy.arange(24.0).reshape(2, 3, 4)
        for view in [x.T, x[:, 1:], x[..., ::2], x[:0], numpy.float64(3) * numpy.ones(()), numpy.broadcast_to(x[0], (2, 3, 4))]:
            self.assertTrue(numpy.array_equal(model.double(view), view * 2), view.strides)
        with self.assertRaises(BufferError):
            model.double(x[::-1])

    def test_read_only_memory_is_copied(self):
        model = loaded()
        x = numpy.ones(4)
        x.flags.writeable = False
        model.fill(x)
        self.assertTrue((x == 1).all())

    def test_keywords_are_a_map_at_the_end(self):
        self.assertEqual(loaded().norm(numpy.ones(4, "f4"), scale=2.5), 10.0)

    def test_results_are_of_the_library_of_the_arguments(self):
        model = loaded()
        found = model.both(numpy.ones((2, 2), "f4"))
        self.assertIsInstance(found["sum"], numpy.ndarray)
        self.assertIsInstance(found["list"][0], numpy.ndarray)
        self.assertEqual(found["list"][1:], [1, "a", None, True, 2.5])
        self.assertIsInstance(model.session.call("double", numpy.ones(2)), tscript.Tensor)

    def test_memory_lives_as_long_as_somebody_uses_it(self):
        model = loaded()
        y = model.double(numpy.ones(1000))
        del model
        gc.collect()
        self.assertEqual(y.sum(), 2000)
        tensor = tscript.Session().eval("full([1000], 3.0)")
        z = tensor.numpy()
        del tensor
        gc.collect()
        self.assertEqual(z.sum(), 3000)

    def test_owners_get_their_memory_back(self):
        model = loaded()
        x = numpy.ones(10)
        before = sys.getrefcount(x)
        for _ in range(5):
            model.double(x)
        gc.collect()
        self.assertLessEqual(sys.getrefcount(x), before + 1)

    def test_capsules(self):
        tensor = tscript.Session().eval("arange(3)")
        self.assertIn('"dltensor"', repr(tensor.__dlpack__()))
        self.assertIn('"dltensor_versioned"', repr(tensor.__dlpack__(max_version=(1, 0))))
        self.assertEqual(tensor.__dlpack_device__(), (1, 0))
        copy = numpy.from_dlpack(Wrapped(tensor, copy=True))
        self.assertNotEqual(copy.__array_interface__["data"][0], tensor.numpy().__array_interface__["data"][0])
        with self.assertRaises(BufferError):
            tensor.__dlpack__(stream=1)
        with self.assertRaises(BufferError):
            tensor.__dlpack__(dl_device=(2, 0))

    def test_a_producer_of_before_dlpack_1_0(self):
        model = loaded()
        x = numpy.arange(3.0)
        self.assertEqual(model.session.call("double", Old(x)).numpy().tolist(), [0, 2, 4])
        used = x.__dlpack__()
        with self.assertRaises(TypeError):
            model.session.call("double", Twice(used))
            model.session.call("double", Twice(used))

    def test_a_gpu_of_the_script_stays_there(self):
        tensor = tscript.Session(simulate_gpus=1).eval('ones([2], #{device: "cuda"})')
        self.assertEqual((tensor.device, tensor.__dlpack_device__()), ("cuda:0", (2, 0)))
        with self.assertRaises((tscript.Error, BufferError)):
            tensor.numpy()


class Wrapped:
    """A tensor that answers with other words than it was asked."""

    def __init__(self, tensor, **words):
        self.tensor, self.words = tensor, words

    def __dlpack__(self, **words):
        return self.tensor.__dlpack__(**self.words)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


class Old(Wrapped):
    def __dlpack__(self, stream=None):
        return self.tensor.__dlpack__()


class Twice:
    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, max_version=None):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


@unittest.skipIf(torch is None, "PyTorch is not here")
class PyTorch(unittest.TestCase):
    def test_all_dtypes(self):
        model = loaded()
        kinds = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128"
        for name in kinds.split():
            x = torch.arange(6).reshape(2, 3).to(getattr(torch, name))
            y = model.same(x)
            self.assertEqual(y.dtype, x.dtype)
            self.assertTrue(torch.equal(x, y), name)

    def test_nothing_is_copied(self):
        model = loaded()
        x = torch.zeros(2, 3)
        self.assertEqual(model.same(x).data_ptr(), x.data_ptr())
        model.fill(x)
        self.assertTrue((x == 7).all())
        self.assertTrue(torch.equal(model.double(x.T), x.T * 2))

    def test_gradients_of_a_script(self):
        w = torch.tensor([1.0, -2.0])
        self.assertEqual(loaded().grads(w).tolist(), [2.0, -4.0])
        # PyTorch's own history does not go into the script, which PyTorch says.
        with self.assertRaises((BufferError, RuntimeError)):
            loaded().double(torch.ones(2, requires_grad=True))

    def test_a_tensor_elsewhere_is_refused(self):
        with self.assertRaises((BufferError, RuntimeError, ValueError)):
            loaded().double(torch.ones(2, device="meta"))


if __name__ == "__main__":
    unittest.main()
