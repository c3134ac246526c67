"""Plays the cases of the Autobahn test suite against a WebSocket server and prints its verdicts as JSON.

    autobahn_client.py SUITE.tar.gz ws://host:port/path

The suite (autobahntestsuite on PyPI) is a program of Python 2. Its cases are what counts, each a class that sends frames and
says what must come back; they are taken from its archive as they are but for the few words that changed since. A string of
Python 2 is one of bytes: here it is one of the characters U+0000 to U+00FF, and the protocol below turns the one into the
other. Left out are the cases of compression (12, 13), which the server must offer, and those of throughput (9 but for four).
"""

import binascii
import importlib
import json
import pathlib
import re
import sys
import tarfile
import tempfile
import types

from autobahn.twisted.websocket import WebSocketClientFactory, WebSocketClientProtocol
from autobahn.websocket import utf8validator
from twisted.internet import endpoints, reactor
from twisted.internet.defer import DeferredSemaphore, Deferred, gatherResults
from twisted.python import failure

WANTED = re.compile(r"case([1-7]_\w+|9_[12]_[12]|10_\w+)\.py")
AT_ONCE = 16
LIMIT = 240
# A case that waits for what never comes fails whatever the bound is; one that passes must not need a machine that idles.
PATIENCE = 10


def bytes_of(text):
    return text if isinstance(text, bytes) else text.encode("latin-1")


def text_of(content):
    return content.decode("latin-1")


def modern(source):
    """The words of Python 2 that the cases use, in those of Python 3."""
    for pattern, word in [
        (r"^(\s*)print\b.*$", r"\1pass"),
        (r"\bxrange\b", "range"),
        (r"\bunichr\b", "chr"),
        (r"\(object, Case, \)", "(Case, )"),
        (r"\) / self\.p\.autoFragmentSize", ") // self.p.autoFragmentSize"),
    ]:
        source = re.sub(pattern, word, source, flags=re.MULTILINE)
    return source


def stand_in(name, **members):
    """A module of bytes that the cases give strings to."""
    sys.modules[name] = module = types.ModuleType(name)
    module.__dict__.update(members)


class Validator(utf8validator.Utf8Validator):
    def validate(self, text):
        return super().validate(bytes_of(text))


def cases(archive, folder):
    """Their classes by number: `1.1.1` and so on."""
    with tarfile.open(archive) as files:
        for member in files:
            name = pathlib.PurePosixPath(member.name)
            if name.parent.name == "case" and (WANTED.fullmatch(name.name) or name.name == "case.py"):
                source = files.extractfile(member).read().decode("latin-1")
                (folder / name.name).write_text(modern(source), encoding="utf-8")
    stand_in("binascii", b2a_hex=lambda text: text_of(binascii.b2a_hex(bytes_of(text))))
    utf8validator.Utf8Validator = Validator
    sys.path.insert(0, str(folder))
    base = importlib.import_module("case").Case
    base.compare = lambda self, left, right: left == right
    found = {}
    for file in folder.glob("case*.py"):
        for value in list(vars(importlib.import_module(file.stem)).values()):
            for kind in value if isinstance(value, list) else [value]:
                if isinstance(kind, type) and issubclass(kind, base) and re.fullmatch(r"Case\d+(_\d+)+", kind.__name__):
                    found[kind.__name__[4:].replace("_", ".")] = kind
    return found


class Fuzzer(WebSocketClientProtocol):
    """What a case knows as its protocol."""

    connectionWasOpen = False
    createWirelog = True

    def __init__(self, kind, number):
        super().__init__()
        self.number = number
        self.ended = Deferred()
        self.txFrameStats = {}
        self.kind = kind

    def connectionMade(self):
        self.case = self.kind(self)
        super().connectionMade()

    def onOpen(self):
        self.connectionWasOpen = True
        self.case.onOpen()

    def onMessage(self, payload, isBinary):
        self.case.onMessage(text_of(payload), isBinary)

    def onPing(self, payload):
        super().onPing(payload)
        self.case.onPing(text_of(payload))

    def onPong(self, payload):
        self.case.onPong(text_of(payload))

    def onClose(self, wasClean, code, reason):
        self.case.onClose(wasClean, code, reason)

    def connectionLost(self, reason=failure.Failure(ConnectionError("closed"))):
        super().connectionLost(reason)
        self.case.onConnectionLost(self.failedByMe)
        self.ended.callback([self.number, self.case.behavior, self.case.behaviorClose])

    def sendFrame(self, opcode, payload=b"", fin=True, rsv=0, mask=None, **more):
        self.txFrameStats[opcode] = self.txFrameStats.get(opcode, 0) + 1
        super().sendFrame(opcode, bytes_of(payload), fin, rsv, mask and bytes_of(mask), **more)

    def sendMessage(self, payload, isBinary=False, fragmentSize=None, **more):
        super().sendMessage(bytes_of(payload), isBinary, fragmentSize, **more)

    def sendMessageFrameData(self, payload, sync=False):
        return super().sendMessageFrameData(bytes_of(payload), sync)

    def sendCloseFrame(self, code=None, reasonUtf8=None, isReply=False):
        super().sendCloseFrame(code, None if reasonUtf8 is None else bytes_of(reasonUtf8), isReply)

    def continueLater(self, delay, fun, tag=None):
        reactor.callLater(delay, lambda: fun() if self.state != self.STATE_CLOSED else None)

    def killAfter(self, delay):
        self.continueLater(delay * PATIENCE, self._fail_connection)

    def closeAfter(self, delay):
        self.continueLater(delay * PATIENCE, self.sendClose)

    def enableWirelog(self, enable):
        pass


def play(kind, number, url):
    factory = WebSocketClientFactory(url)
    factory.setProtocolOptions(failByDrop=False, openHandshakeTimeout=30, closeHandshakeTimeout=10)
    factory.setProtocolOptions(serverConnectionDropTimeout=10)
    fuzzer = Fuzzer(kind, number)
    fuzzer.factory = factory
    endpoint = endpoints.TCP4ClientEndpoint(reactor, factory.host, factory.port)
    connected = endpoints.connectProtocol(endpoint, fuzzer)
    connected.addErrback(lambda why: fuzzer.ended.callback([number, "NOT CONNECTED", str(why.value)]))
    return fuzzer.ended


def main(archive, url):
    with tempfile.TemporaryDirectory() as folder:
        found = cases(archive, pathlib.Path(folder))
        turns = DeferredSemaphore(AT_ONCE)
        order = sorted(found, key=lambda number: [int(part) for part in number.split(".")])
        played = gatherResults([turns.run(play, found[number], number, url) for number in order], consumeErrors=True)
        verdicts = []
        played.addCallbacks(verdicts.extend, lambda why: print(why.value.subFailure, file=sys.stderr))
        played.addBoth(lambda _: reactor.stop())
        reactor.callLater(LIMIT, reactor.crash)
        reactor.run()
    print(json.dumps({number: verdict for number, *verdict in verdicts}))


main(*sys.argv[1:])
