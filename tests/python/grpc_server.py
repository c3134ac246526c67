"""A gRPC server without generated code: bytes in, bytes out.

    grpc_server.py NAME    prints "listening PORT", serves until it is killed
"""

import os
import sys
import time
from concurrent import futures

import grpc


def unary(request, context):
    context.set_trailing_metadata((("x-served-by", NAME),))
    return request


def fail(request, context):
    context.abort(grpc.StatusCode.NOT_FOUND, "no such thing")


def stream(request, context):
    for number in range(int(request)):
        yield b"%d" % number
    context.set_trailing_metadata((("x-count", request.decode()),))


def collect(requests, context):
    return b",".join(requests)


def chat(requests, context):
    for request in requests:
        yield request.upper()


def die(request, context):
    """Two messages, then the end of this process."""
    yield b"first"
    yield b"second"
    # The client says when it has both: it asks for them by the file's disappearance.
    while os.path.exists(request.decode()):
        if not context.is_active():
            return
        time.sleep(0.01)
    os._exit(1)


NAME = sys.argv[1]
METHODS = {
    "Unary": grpc.unary_unary_rpc_method_handler(unary),
    "Fail": grpc.unary_unary_rpc_method_handler(fail),
    "Stream": grpc.unary_stream_rpc_method_handler(stream),
    "Collect": grpc.stream_unary_rpc_method_handler(collect),
    "Chat": grpc.stream_stream_rpc_method_handler(chat),
    "Die": grpc.unary_stream_rpc_method_handler(die),
}

server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", METHODS),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(f"listening {port}", flush=True)
server.wait_for_termination()
