"""tscript in Python: scripts run beside NumPy and PyTorch, and share their memory by DLPack.

    import numpy, tscript

    model = tscript.load("model.rhai")       # runs the script
    y = model.predict(numpy.ones((4, 3)))    # calls its function; an array comes back for an array
"""

import sys as _sys

from ._native import Opaque, Session, Tensor

__all__ = ["Error", "Module", "Opaque", "ScriptWarning", "Session", "Tensor", "load"]
__version__ = "@VERSION@"


class Error(Exception):
    """An error of a script. Its text is the message as the program shows it, with the lines of the script."""

    def __init__(self, text, code=None, message=None, help=None, source=None, line=None, column=None):
        super().__init__(text)
        self.code = code
        self.message = message
        self.help = help
        self.source = source
        self.line = line
        self.column = column

    def __str__(self):
        # A line feed first: the frame of the message begins at the left.
        return "\n" + self.args[0]


class ScriptWarning(UserWarning):
    """A warning of a script, such as an access that nothing orders."""


class Module:
    """A script that ran: its functions are attributes. A result is an array of the library of the first array given."""

    def __init__(self, session):
        self.session = session

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)

        def function(*arguments, **keywords):
            result = self.session.call(name, *arguments, **keywords)
            return _like(result, _library([arguments, keywords]))

        function.__name__ = name
        return function


def load(path, **settings):
    """Runs a script in a session of its own, made with the settings of `Session`; its functions can then be called."""
    session = Session(**settings)
    session.run(path)
    return Module(session)


def _library(values):
    """`numpy` or `torch`, whichever the first array is of."""
    for value in values:
        if isinstance(value, (list, tuple, dict)):
            found = _library(value.values() if isinstance(value, dict) else value)
            if found:
                return found
        for name, kind in (("torch", "Tensor"), ("numpy", "ndarray")):
            library = _sys.modules.get(name)
            if library is not None and isinstance(value, getattr(library, kind)):
                return name
    return None


def _like(value, library):
    if library is None:
        return value
    if isinstance(value, Tensor):
        return value.torch() if library == "torch" else value.numpy()
    if isinstance(value, list):
        return [_like(item, library) for item in value]
    if isinstance(value, dict):
        return {name: _like(item, library) for name, item in value.items()}
    return value
