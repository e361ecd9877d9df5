"""The library in one process with a gRPC server and its BoringSSL, protobuf and NumPy, loaded before and after them; all of them at work.

Usage: neighbours.py PLUGIN first|last    in a Python that has tests/requirements.txt
"""

import ctypes
import sys


class Guest:
    def __init__(self, path):
        self.plugin = ctypes.CDLL(path)
        self.plugin.plugin_open.restype = ctypes.c_void_p
        self.all = [ctypes.c_void_p(self.plugin.plugin_open(tcp)) for tcp in (0, 1)]
        assert all(each.value for each in self.all), "servers and sessions start"

    def run(self):
        assert all(self.plugin.plugin_run(each) == 0 for each in self.all)

    def close(self):
        assert self.plugin.plugin_close(self.all[0]) > 0 and self.plugin.plugin_close(self.all[1]) == 0


class Neighbours:
    def __init__(self):
        import concurrent.futures

        import grpc
        from google.protobuf import struct_pb2
        from google.protobuf.internal import api_implementation

        assert api_implementation.Type() in ("upb", "cpp"), "protobuf's native half is loaded"
        self.message = struct_pb2.Struct
        handler = grpc.method_handlers_generic_handler(
            "Echo", {"Call": grpc.unary_unary_rpc_method_handler(lambda request, context: request, self.message.FromString, self.message.SerializeToString)})
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        self.server.add_generic_rpc_handlers((handler,))
        port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        # Credentials make gRPC use its own TLS library, whose symbols are OpenSSL's.
        grpc.ssl_channel_credentials()
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.call = self.channel.unary_unary("/Echo/Call", self.message.SerializeToString, self.message.FromString)

    def run(self):
        message = self.message()
        message["a"] = [1, "two", None]
        assert self.call(message, timeout=20) == message

    def close(self):
        self.channel.close()
        self.server.stop(None).wait()


def main():
    import ssl

    parts = [lambda: Guest(sys.argv[1]), Neighbours]
    if sys.argv[2] == "last":
        parts.reverse()
    parts = [make() for make in parts]
    for _ in range(20):
        for part in parts:
            part.run()
        ssl.create_default_context()
    for part in parts:
        part.close()


if __name__ == "__main__":
    main()
