"""Connect to a server as an unknown client: does it use TLS, and does it require a client certificate?

python probe.py PORT [CERTIFICATE KEY]: with a certificate, does the server accept this certificate?
"""

import socket
import ssl
import sys
import time
from collections.abc import Sequence
from pathlib import Path

PATIENCE, VERDICT = 240.0, 3.0  # seconds for a port to open, and for a server to close the connection


def main() -> None:
    """Wait for the port, then print the result in one line."""
    port, shown, until = int(sys.argv[1]), sys.argv[2:4], time.time() + PATIENCE
    while time.time() < until:
        if all(Path(path).exists() for path in shown):  # another process may be creating them
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
                    print(knock(plain, shown))
                    return
            except (ConnectionError, TimeoutError):
                pass
        time.sleep(0.5)
    print("nobody listens")


def knock(plain: socket.socket, shown: Sequence[str] = ()) -> str:
    """Do a handshake, with or without a certificate, and wait for the server's reaction."""
    open_door = "TLS, lets this certificate in" if shown else "TLS, no certificate asked for"
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if shown:
        context.load_cert_chain(*shown)
    context.set_alpn_protocols(["h2", "http/1.1"])  # without these protocols gRPC closes every connection
    try:
        with context.wrap_socket(plain) as secured:
            secured.settimeout(VERDICT)
            try:
                return open_door if secured.recv(1) else "TLS, closes the connection"
            except TimeoutError:
                return open_door
    except ssl.SSLError as error:
        reason = (error.reason or "").lower()
        if shown and ("alert" in reason or "certificate" in reason):
            return "TLS, refuses this certificate"
        if "certificate" in reason:
            return "TLS, a certificate is needed"
        return "no TLS" if "wrong_version" in reason or "record" in reason else f"no TLS ({reason})"
    except (OSError, ConnectionError):
        return "no TLS"


if __name__ == "__main__":
    main()
