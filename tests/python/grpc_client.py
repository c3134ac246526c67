"""A gRPC client without generated code. It makes one call of each kind and prints what came of each as JSON.

    grpc_client.py ADDRESS AUTHORITY_FILE
"""

import json
import os
import queue
import sys
import tempfile

import grpc

address, roots = sys.argv[1:]
with open(roots, "rb") as file:
    credentials = grpc.ssl_channel_credentials(file.read())
channel = grpc.secure_channel(address, credentials, [("grpc.enable_retries", 0)])
LIMIT = 20


def outcome(call):
    """Whatever comes of a call: its code, its words, its trailing metadata."""
    try:
        result = call()
        return {"code": "OK", **result}
    except grpc.RpcError as error:
        trailers = dict(error.trailing_metadata() or ())
        return {"code": error.code().name, "details": error.details(), "trailers": trailers}


def unary(method, message, service="test.Echo"):
    def call():
        response, rpc = channel.unary_unary(f"/{service}/{method}").with_call(message, timeout=LIMIT)
        return {"message": response.decode(), "trailers": dict(rpc.trailing_metadata())}

    return outcome(call)


def stream(count):
    def call():
        rpc = channel.unary_stream("/test.Echo/Stream")(b"%d" % count, timeout=LIMIT)
        got = [int(message) for message in rpc]
        return {"is_whole": got == list(range(count)), "trailers": dict(rpc.trailing_metadata())}

    return outcome(call)


def collect():
    def call():
        parts = iter([b"a", b"b", b"c"])
        return {"message": channel.stream_unary("/test.Echo/Collect")(parts, timeout=LIMIT).decode()}

    return outcome(call)


def chat():
    """Each message is sent after the answer to the one before has come: nothing may be held back."""

    def call():
        words = queue.Queue()
        words.put(b"one")
        rpc = channel.stream_stream("/test.Echo/Chat")(iter(words.get, None), timeout=LIMIT)
        got = []
        for message in rpc:
            got.append(message.decode())
            words.put({1: b"two", 2: b"three"}.get(len(got)))
        return {"messages": got}

    return outcome(call)


def die():
    """A destination that ends in the middle of a stream."""
    got = []

    def call():
        with tempfile.NamedTemporaryFile(delete=False) as file:
            name = file.name
        rpc = channel.unary_stream("/test.Echo/Die")(name.encode(), timeout=LIMIT)
        for message in rpc:
            got.append(message.decode())
            if len(got) == 2:
                os.unlink(name)
        return {}

    return {**outcome(call), "messages": got}


large = "x" * 1_000_000
report = {
    "unary": unary("Unary", b"hello"),
    "large": unary("Unary", large.encode()).get("message") == large,
    "fail": unary("Fail", b""),
    "unknown": unary("Nothing", b""),
    "stream": stream(5000),
    "collect": collect(),
    "chat": chat(),
    "no_route": unary("Unary", b"", service="test.None"),
    "dead": unary("Unary", b"", service="test.Dead"),
    "die": die(),
    "after": [unary("Unary", b"again")["code"] for _ in range(20)],
}
print(json.dumps(report))
