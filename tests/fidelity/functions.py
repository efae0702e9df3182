"""The table: user functions, each with what proves that it does what its name says."""

from __future__ import annotations

from tests.fidelity.observe import DIFFERENT_VARIABLES, ORDER, Row

OK = "def handler(event, context):\n    return {'module': __name__, 'event': event}\n"
RAISES = "def handler(event, context):\n    {}\n"
JSON_LOGS = {"AWS_LAMBDA_LOG_FORMAT": "JSON"}
RUN_WITHOUT_KEY = {"IDEMPOTENCY_MISSING_KEY": "run"}

# Our frame, where a traceback is printed (the runtime prints spaces that do not break), and where
# one is in an error's payload. The runtime's resolver is left at another line if we come between.
OUR_FRAME = (
    r'[ \xa0]{2}File "[^"\n]*/lambda_once_wrapper/bootstrap\.py", line \d+, in \w+\n'
    r"(?:[ \xa0]{4}[^\n]*(?:\n|$))*",
    "",
)
OUR_FRAME_IN_PAYLOAD = (
    r', "  File \\"[^"]*/lambda_once_wrapper/bootstrap\.py\\", line \d+, in (?:\\.|[^"\\])*"',
    "",
)
FRAME_OF_RESOLVER = (
    r'[ ]{2}File "[^"\n]*/awslambdaric/bootstrap\.py", line \d+, in _get_handler\n'
    r"(?:    [^\n]*\n)*",
    "",
)
ONE_FRAME_MORE = (
    "a traceback that begins above the handler shows the frame of our bootstrap.py between the"
    " runtime and the handler"
)

OWN_STANDARD_MODULE = (
    "boto3 cannot be imported where the function's own file takes the place of a module of Python's"
    " standard library; the error names that file"
)

LAYOUTS = (
    Row("app.handler", OK, '"module": "app"'),
    Row("src/app.handler", handler="src/app.handler", files={"src/app.py": OK}, shows='"src.app"'),
    Row(
        "a.b.c.handler",
        handler="a.b.c.handler",
        files={"a/__init__.py": "", "a/b/__init__.py": "", "a/b/c.py": OK},
        shows='"a.b.c"',
    ),
    Row("namespace package", handler="ns.app.handler", files={"ns/app.py": OK}, shows='"ns.app"'),
    Row(
        "relative imports",
        handler="shop.app.handler",
        files={
            "shop/__init__.py": "",
            "shop/helper.py": "NAME = __name__\n",
            "shop/app.py": "from .helper import NAME\nfrom . import helper\n"
            "def handler(event, context):\n    return [NAME, helper.__package__]\n",
        },
        shows='["shop.helper", "shop"]',
    ),
    *(
        Row(f"module named {name}", handler=f"{name}.handler", files={f"{name}.py": OK}, shows=name)
        for name in ("bootstrap", "handler", "config", "store", "errors", "lambda")
    ),
    *(
        Row(
            f"module named {name}",
            handler=f"{name}.handler",
            files={f"{name}.py": OK},
            shows=name,
            environment={"IDEMPOTENCY_STORE_FAILURE": "run"},
            difference=f"with IDEMPOTENCY_STORE_FAILURE=run only: {OWN_STANDARD_MODULE}",
        )
        for name in ("calendar", "queue")
    ),
    Row(
        "package named lambda",
        handler="lambda.app.handler",
        files={"lambda/__init__.py": "", "lambda/app.py": OK},
        shows='"lambda.app"',
    ),
    *(
        Row(
            f"own {name}.py beside the handler",
            f"import {name}\ndef handler(event, context):\n    return {name}.DAY\n",
            '"monday"',
            files={f"{name}.py": "DAY = 'monday'\n"},
            difference=OWN_STANDARD_MODULE,
            instead=f"{name}.py is imported in place of Python's own {name}",
        )
        for name in ("calendar", "queue")
    ),
    Row(
        "modules loaded before the user's",
        "import sys\nloaded = sorted(sys.modules)\n"
        "def handler(event, context):\n    return loaded\n",
        '"awslambdaric.bootstrap"',
        difference="sys.modules holds lambda_once_wrapper and its bootstrap, and nothing more",
        forgiven=((r'"lambda_once_wrapper(?:\.bootstrap)?", ', ""),),
    ),
    Row(
        "import path",
        "import sys\ndef handler(event, context):\n    return sys.path\n",
        "/opt/python",
    ),
    Row(
        "environment",
        "import os\ndef handler(event, context):\n"
        f"    hidden = {DIFFERENT_VARIABLES!r}\n"
        "    return sorted(v for v in os.environ.items() if v[0] not in hidden)\n",
        '["_HANDLER", "app.handler"]',
    ),
    Row(
        "reads _HANDLER at import",
        "import os\nNAME = os.environ['_HANDLER']\ndef handler(event, context):\n    return NAME\n",
        '"app.handler"',
    ),
)

CALLABLES = (
    Row(
        "callable instance",
        "class Handler:\n    def __call__(self, event, context):\n        return 'called'\n"
        "handler = Handler()\n",
        '"called"',
    ),
    Row(
        "callable instance with slots",
        "class Handler:\n    __slots__ = ()\n"
        "    def __call__(self, event, context):\n        return 'slots'\n"
        "handler = Handler()\n",
        '"slots"',
    ),
    Row(
        "partial",
        "from functools import partial\ndef work(name, event, context):\n    return name\n"
        "handler = partial(work, 'partial')\n",
        '"partial"',
    ),
    Row(
        "bound method",
        "class App:\n    def work(self, event, context):\n        return 'bound'\n"
        "handler = App().work\n",
        '"bound"',
    ),
    Row("lambda", "handler = lambda event, context: 'lambda'\n", '"lambda"'),
    Row(
        "decorated without __name__",
        "class Decorated:\n    def __init__(self, function):\n        self.function = function\n"
        "    def __getattribute__(self, name):\n"
        "        if name == '__name__':\n            raise AttributeError(name)\n"
        "        return object.__getattribute__(self, name)\n"
        "    def __call__(self, *args):\n        return self.function(*args)\n"
        "@Decorated\ndef handler(event, context):\n    return 'decorated'\n",
        '"decorated"',
    ),
    Row(
        "handler from a module's __getattr__",
        "def __getattr__(name):\n    if name == 'handler':\n"
        "        return lambda event, context: 'lazy'\n    raise AttributeError(name)\n",
        '"lazy"',
    ),
    Row(
        "class as handler",
        "class handler(str):\n    def __new__(cls, e, c):\n        return 'made'\n",
        '"made"',
    ),
    Row(
        "coroutine",
        "async def handler(event, context):\n    return 1\n",
        "Runtime.MarshalError",
        environment={"PYTHONWARNINGS": "ignore"},
    ),
    Row("generator", "def handler(event, context):\n    yield 1\n", "Runtime.MarshalError"),
    Row(
        "handler that cannot be called",
        "handler = 5\n",
        "'int' object is not callable",
        difference=ONE_FRAME_MORE,
        forgiven=(OUR_FRAME, OUR_FRAME_IN_PAYLOAD),
    ),
    Row(
        "handler with one parameter",
        "def handler(event):\n    return 1\n",
        "takes 1 positional argument",
        difference=ONE_FRAME_MORE,
        forgiven=(OUR_FRAME, OUR_FRAME_IN_PAYLOAD),
    ),
)

AT_IMPORT = (
    Row("import of a missing module", "import notthere\n", "Runtime.ImportModuleError"),
    Row(
        "missing name in a module",
        "from json import notthere\n",
        "cannot import name 'notthere' from 'json'",
    ),
    Row("missing handler module", handler="gone.handler", shows="No module named 'gone'"),
    Row("syntax error", "def handler(event, context)\n    pass\n", "Runtime.UserCodeSyntaxError"),
    Row(
        "syntax error in a nested module",
        "import helper\n" + OK,
        "helper.py",
        files={"helper.py": "x = (\n"},
    ),
    Row("indentation error", "def handler(event, context):\nreturn 1\n", "expected an indented"),
    *(
        Row(f"{kind} at import", f"{code}\n{OK}", f'"errorType": "{kind}"')
        for kind, code in (
            ("KeyError", "{}['TABLE']"),
            ("ZeroDivisionError", "1 / 0"),
            ("AttributeError", "import os\nos.notthere"),
            ("ValueError", "int('x')"),
            ("TypeError", "len(5)"),
            ("RecursionError", "def f():\n    f()\nraise RecursionError('deep')"),
        )
    ),
    Row(
        "error in a module that the handler's module imports",
        "import helper\n" + OK,
        "in load",
        files={"helper.py": "def load():\n    raise LookupError('no settings')\nload()\n"},
    ),
    Row(
        "AttributeError of its own class at import",
        "class Missing(AttributeError):\n    def __str__(self):\n        return 'own text'\n"
        "raise Missing(1, 2)\n",
        '"errorMessage": "own text"',
    ),
    Row(
        "error with a cause at import",
        "try:\n    1 / 0\nexcept ZeroDivisionError as fault:\n"
        "    raise RuntimeError('settings') from fault\n",
        '"errorType": "RuntimeError"',
    ),
    Row("SystemExit at import", "import sys\nsys.exit(7)\n", "exit status 7"),
    Row("SystemExit with text at import", "import sys\nsys.exit('no settings')\n", "no settings"),
    Row(
        "KeyboardInterrupt at import",
        "raise KeyboardInterrupt\n",
        "KeyboardInterrupt",
        difference=ONE_FRAME_MORE,
        forgiven=(OUR_FRAME, FRAME_OF_RESOLVER),
    ),
    Row("missing handler", "def other(event, context):\n    pass\n", "Runtime.HandlerNotFound"),
    Row("malformed handler", OK, "Runtime.MalformedHandlerName", handler="nodots"),
    Row("empty module in the handler", OK, '"errorType"', handler=".handler"),
    Row("built-in module", OK, "Runtime.BuiltInModuleConflict", handler="sys.handler"),
    Row(
        "handler that is no Python reference",
        OK,
        "Runtime.ImportModuleError",
        handler="com.example.Handler::handleRequest",
    ),
)

RAISING = (
    Row("exception", RAISES.format("raise ValueError('broken')"), '"errorType": "ValueError"'),
    Row(
        "exception with a cause",
        "def handler(event, context):\n    try:\n        1 / 0\n"
        "    except ZeroDivisionError as fault:\n        raise RuntimeError('outer') from fault\n",
        '"errorType": "RuntimeError"',
    ),
    Row(
        "exception of its own class",
        "class OutOfStock(Exception):\n    def __init__(self, item):\n"
        "        super().__init__(f'no {item} left')\n"
        "def check():\n    raise OutOfStock('book')\n"
        "def handler(event, context):\n    check()\n",
        "no book left",
    ),
    Row(
        "exception group",
        "import sys\nGroup = getattr(__builtins__, 'ExceptionGroup', None) or (\n"
        "    __builtins__['ExceptionGroup'] if isinstance(__builtins__, dict) else Exception)\n"
        "def handler(event, context):\n    raise Group('two', [ValueError(1), KeyError(2)])\n",
        "two",
    ),
    Row(
        "exception whose __str__ raises",
        "class Bad(Exception):\n    def __str__(self):\n        raise TypeError('in str')\n"
        "def handler(event, context):\n    raise Bad\n",
        "Runtime.ExitError",
        difference=ONE_FRAME_MORE,
        forgiven=(OUR_FRAME,),
    ),
    Row(
        "exception with a lone surrogate",
        RAISES.format(r"raise ValueError('\ud800')"),
        "",
    ),
    Row(
        "exception of several lines, not ASCII",
        RAISES.format("raise ValueError('erste Zeile: ä\\nzweite: €')"),
        "zweite",
    ),
    Row(
        "one exception object raised twice",
        "FAULT = ValueError('shared')\ndef handler(event, context):\n    raise FAULT\n",
        "shared",
        events=(ORDER, {"orderId": 18}),
        difference=ONE_FRAME_MORE,
        forgiven=(OUR_FRAME, OUR_FRAME_IN_PAYLOAD),
    ),
    Row(
        "traceback printed by the handler",
        "import traceback\ndef handler(event, context):\n    try:\n        {}['x']\n"
        "    except KeyError:\n        traceback.print_exc()\n",
        "KeyError: 'x'",
    ),
    Row(
        "stack printed by the handler",
        "import traceback\ndef handler(event, context):\n    traceback.print_stack()\n",
        "in handler",
        difference=ONE_FRAME_MORE,
        forgiven=(OUR_FRAME,),
    ),
    Row(
        "BaseException",
        "class Stop(BaseException):\n    pass\n" + RAISES.format("raise Stop('now')"),
        "Runtime.ExitError",
        difference=ONE_FRAME_MORE,
        forgiven=(OUR_FRAME,),
    ),
    Row("sys.exit(0)", "import sys\n" + RAISES.format("sys.exit(0)"), "Runtime.ExitError"),
    Row("sys.exit(3)", "import sys\n" + RAISES.format("sys.exit(3)"), "exit status 3"),
    Row("sys.exit(text)", "import sys\n" + RAISES.format("sys.exit('bye')"), "bye"),
    Row("os._exit(4)", "import os\n" + RAISES.format("os._exit(4)"), "exit status 4"),
    Row(
        "killed by itself",
        "import os\n" + RAISES.format("os.kill(os.getpid(), 9)"),
        "signal: killed",
    ),
    Row(
        "timeout",
        "import time\n" + RAISES.format("time.sleep(30)"),
        "Task timed out after 2.00 seconds",
        timeout_s=2,
    ),
    Row(
        "recursion without end",
        "def handler(event, context):\n    return handler(event, context)\n",
        '"errorType": "RecursionError"',
        difference="the stack is one frame deeper, so endless recursion ends one call earlier",
        forgiven=(
            (r'(?:"  File [^"]*app\.py(?:\\.|[^"\\])*"(?:, )?)+', "<frames>"),
            (r'(?:[ \xa0]{2}File "[^"\n]*app\.py[^\n]*\n[^\n]*(?:\n[ \xa0~^]+)?\n?)+', "<frames>"),
            (r"\[Previous line repeated \d+ more times\]", ""),
        ),
    ),
    Row(
        "fails, then works",
        "calls = []\ndef handler(event, context):\n    calls.append(1)\n"
        "    if len(calls) == 1:\n        raise OSError('busy')\n    return len(calls)\n",
        "busy",
        events=(ORDER, ORDER),
    ),
)


def result(name: str, expression: str, shows: str = "", imports: str = "") -> Row:
    """A function that returns the value of an expression."""
    code = f"{imports}\ndef handler(event, context):\n    return {expression}\n"
    return Row(f"result {name}", code, shows)


RESULTS = (
    *(result(text, text) for text in ("None", "0", "False", '""', "[]", "{}", "-0.0", "1e400")),
    result("bytes", r"b'\x00\xff raw'", r"\xff raw"),
    result("empty bytes", "b''"),
    result("nested bytes", "{'data': b'text'}", '{"data": "text"}'),
    result("Decimal", "[Decimal('1.10'), Decimal('1E+5')]", "1.10", "from decimal import Decimal"),
    result("Decimal NaN", "Decimal('NaN')", "NaN", "from decimal import Decimal"),
    result("NaN and Infinity", "[float('nan'), float('inf')]", "[NaN, Infinity]"),
    result(
        "namedtuple",
        "P(1, 2)",
        '{"x": 1, "y": 2}',
        "from collections import namedtuple\nP = namedtuple('P', 'x y')",
    ),
    result("keys that are no text", "{1: 'a', None: 'b', True: 'c', 1.5: 'd'}", '"null": "b"'),
    result("tuple", "(1, (2, 3))", "[1, [2, 3]]"),
    result("large integer", "2 ** 200", str(2**200)),
    result("set", "{1, 2}", "Runtime.MarshalError"),
    result(
        "datetime", "datetime(2026, 1, 1)", "Runtime.MarshalError", "from datetime import datetime"
    ),
    result("UUID", "UUID(int=1)", "Runtime.MarshalError", "from uuid import UUID"),
    result("circle", "LOOP", "Runtime.MarshalError", "LOOP = []\nLOOP.append(LOOP)"),
    result("lone surrogate", r"'\ud800'", r"\ud800"),
    result("not ASCII", "'Grüße, 日本, 😀'", "Gr"),
    result(
        "nested 1,000 deep",
        "NEST",
        "Runtime.MarshalError",
        "NEST = []\nfor _ in range(1000):\n    NEST = [NEST]",
    ),
    result("nested 500 deep", "NEST", "[[[[", "NEST = []\nfor _ in range(500):\n    NEST = [NEST]"),
    result("of 5.9 MB", "'x' * 5_900_000", "5900002 characters"),
    result("of more than 6 MB", "'x' * 6_300_000", "Function.ResponseSizeTooLarge"),
    result(
        "that looks like an error", "{'errorType': 'Mine', 'errorMessage': 'just data'}", "Mine"
    ),
    result("HTTP answer", "{'statusCode': 500, 'body': 'x'}", '"statusCode": 500'),
    Row(
        "result by a marshaller of its own",
        "from awslambdaric.lambda_runtime_client import LambdaRuntimeClient\n"
        "from awslambdaric.lambda_runtime_marshaller import LambdaMarshaller\n"
        "class Mine(LambdaMarshaller):\n    def marshal_response(self, response):\n"
        "        return '\"mine\"', 'application/json'\n"
        "LambdaRuntimeClient.marshaller = Mine()\n"
        "def handler(event, context):\n    return {1, 2}\n",
        '"mine"',
    ),
)

ECHO = "def handler(event, context):\n    return [type(event).__name__, str(event)]\n"

EVENTS = (
    Row("event list", ECHO, '"list"', events=([1, {"a": None}],)),
    Row("event string", ECHO, '"str"', events=("text",)),
    Row("event number", ECHO, '"int"', events=(42,)),
    Row("event fraction", ECHO, '"float"', events=(1.5,)),
    Row("event false", ECHO, '"bool"', events=(False,)),
    *(
        Row(f"event {text.decode()}", ECHO, '["', events=(text,), environment=RUN_WITHOUT_KEY)
        for text in (b"null", b"{}", b"[]", b'""')
    ),
    Row(
        "event that holds no key",
        ECHO,
        '"dict"',
        events=({},),
        difference=(
            "an empty event identifies nothing: IdempotencyKeyMissingError, unless"
            " IDEMPOTENCY_MISSING_KEY=run"
        ),
        instead="IdempotencyKeyMissingError",
    ),
    Row("event that is no JSON", ECHO, "Runtime.UnmarshalError", events=(b"\xff{",)),
    Row("event of duplicate members", ECHO, "2", events=(b'{"a": 1, "a": 2}',)),
    Row("event with huge numbers", ECHO, "1e400", events=(b'{"n": "1e400", "m": 1e400}',)),
    Row("event with NaN", ECHO, "Runtime.UnmarshalError", events=(b'{"n": NaN}',)),
    Row("event not ASCII", ECHO, "dict", events=({"name": "Grüße 😀"},)),
    Row(
        "event of 1 MB",
        "def handler(event, context):\n    return len(event['data'])\n",
        "1000000",
        events=({"data": "x" * 1_000_000},),
    ),
    Row(
        "event that the handler changes",
        "def handler(event, context):\n    event['seen'] = True\n    event.pop('orderId')\n"
        "    return event\n",
        '{"seen": true}',
    ),
    Row(
        "event that the handler clears",
        "def handler(event, context):\n    event.clear()\n    return event\n",
        "{}",
    ),
    Row(
        "context",
        "def handler(event, context):\n"
        "    return [type(context).__module__, sorted(vars(context)), context.function_name,\n"
        "            context.memory_limit_in_mb, repr(context.client_context)]\n",
        "function_name",
    ),
)

LOGGING = """
import logging
log = logging.getLogger()
log.info("info at import")
def handler(event, context):
    for level in ("debug", "info", "warning", "error", "critical"):
        getattr(log, level)("a %s line", level)
    try:
        1 / 0
    except ZeroDivisionError:
        log.exception("caught")
    return [log.level, len(log.handlers)]
"""

SIDE_EFFECTS = (
    Row("prints", RAISES.format("print('printed', flush=True)"), "printed"),
    Row("prints without newline", RAISES.format("print('no end', end='')"), "no end"),
    Row(
        "prints at import to both streams",
        "import sys\nprint('out')\nprint('err', file=sys.stderr)\n" + OK,
        "err",
    ),
    Row("logs, text", LOGGING, "a warning line"),
    *(
        Row(
            f"logs, {form}, {level}",
            LOGGING,
            "a critical line",
            environment={"AWS_LAMBDA_LOG_FORMAT": form, "AWS_LAMBDA_LOG_LEVEL": level},
        )
        for form in ("Text", "JSON")
        for level in ("DEBUG", "INFO", "ERROR")
    ),
    Row(
        "raises with JSON logs",
        RAISES.format("raise ValueError('broken')"),
        '"level": "ERROR"',
        environment=JSON_LOGS,
    ),
    Row(
        "import error with JSON logs",
        "import notthere\n",
        "Runtime.ImportModuleError",
        environment=JSON_LOGS,
    ),
    Row(
        "configures logging",
        "import logging, sys\nlogging.basicConfig(level='DEBUG', stream=sys.stdout, force=True,\n"
        "                    format='%(name)s %(levelname)s %(message)s')\n"
        "def handler(event, context):\n    logging.getLogger('shop').debug('fine')\n"
        "    return len(logging.root.handlers)\n",
        "shop DEBUG fine",
    ),
    Row(
        "logger left to its default",
        "import logging\ndef handler(event, context):\n"
        "    return sorted(n for n in logging.root.manager.loggerDict if 'once' in n)\n",
        "[]",
    ),
    Row(
        "warns",
        "import warnings\ndef handler(event, context):\n    warnings.warn('old')\n",
        "UserWarning: old",
    ),
    Row(
        "warns of its caller",
        "import warnings\ndef handler(event, context):\n    warnings.warn('old', stacklevel=2)\n",
        "UserWarning: old",
        difference=ONE_FRAME_MORE,
        forgiven=((r"\S*/bootstrap\.py:\d+: UserWarning: old\n[^\n]*\n", "<caller>"),),
    ),
    Row(
        "changes the working directory",
        "import os\nos.chdir('/')\ndef handler(event, context):\n    return os.getcwd()\n",
        '"/"',
    ),
    Row(
        "sets a signal handler",
        "import signal, os, time\nseen = []\n"
        "signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))\n"
        "def handler(event, context):\n    os.kill(os.getpid(), signal.SIGUSR1)\n"
        "    time.sleep(0.01)\n    return seen\n",
        "[10]",
    ),
    Row(
        "replaces sys.stdout and sys.stderr",
        "import io, sys\nsys.stdout = io.StringIO()\nsys.stderr = io.StringIO()\n"
        "def handler(event, context):\n    print('hidden')\n    return sys.stdout.getvalue()\n",
        "hidden",
    ),
    Row(
        "closes standard error",
        "import os\nos.close(2)\ndef handler(event, context):\n    return 'closed'\n",
        '"closed"',
    ),
    Row(
        "uses threads",
        "import threading\ndef handler(event, context):\n    found = []\n"
        "    threads = [threading.Thread(target=found.append, args=(n,)) for n in range(4)]\n"
        "    [t.start() for t in threads]\n    [t.join() for t in threads]\n"
        "    return sorted(found)\n",
        "[0, 1, 2, 3]",
    ),
    Row(
        "imports in a thread at import",
        "import threading\nfound = []\ndef load():\n    import fractions\n"
        "    found.append(fractions.__name__)\nthread = threading.Thread(target=load)\n"
        "thread.start()\nthread.join()\ndef handler(event, context):\n    return found\n",
        '"fractions"',
    ),
    Row(
        "forks",
        "import os\ndef handler(event, context):\n    pid = os.fork()\n    if pid == 0:\n"
        "        os._exit(5)\n    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n",
        "5",
        environment={"PYTHONWARNINGS": "ignore"},
    ),
    Row(
        "starts a process with its environment",
        "import subprocess, sys\ndef handler(event, context):\n"
        '    code = \'import os; print(os.environ["_HANDLER"], "PYTHONPATH" in os.environ,\'\n'
        "    code += '[n for n in os.environ if n.startswith(\"LAMBDA_ONCE\")])'\n"
        "    return subprocess.check_output([sys.executable, '-c', code], text=True)\n",
        "app.handler False []",
    ),
    Row(
        "keeps state between invocations",
        "calls = []\ndef handler(event, context):\n    calls.append(event['orderId'])\n"
        "    return calls\n",
        "[1, 2]",
        events=({"orderId": 1}, {"orderId": 2}),
    ),
    Row(
        "empties os.environ",
        "import os\nkept = dict(os.environ)\ndef handler(event, context):\n"
        "    os.environ.pop('LANG')\n    return len(kept) > len(os.environ)\n",
        "true",
    ),
    Row(
        "uses boto3 itself",
        "import boto3\ndef handler(event, context):\n"
        "    return boto3.client('dynamodb').list_tables()['TableNames'][:0]\n",
        "[]",
    ),
    Row(
        "sets a default socket timeout",
        "import socket\nsocket.setdefaulttimeout(9)\ndef handler(event, context):\n"
        "    return socket.getdefaulttimeout()\n",
        "9",
    ),
    Row(
        "seeds random",
        "import random\nrandom.seed(1)\ndef handler(event, context):\n    return random.random()\n",
        "0.13436424411240122",
    ),
)

MODULE_STARTS = tuple(
    Row(f"python -m awslambdaric: {row.name}", row.code, row.shows, style="module")
    for row in (LAYOUTS[0], AT_IMPORT[0], RAISING[0])
)

ROWS = (
    *LAYOUTS,
    *CALLABLES,
    *AT_IMPORT,
    *RAISING,
    *RESULTS,
    *EVENTS,
    *SIDE_EFFECTS,
    *MODULE_STARTS,
)
