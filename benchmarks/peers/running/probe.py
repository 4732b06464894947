"""A stranger tries a door: does it speak TLS, and does it want a certificate? python probe.py PORT"""

import socket
import ssl
import sys
import time

PATIENCE, VERDICT = 240.0, 3.0  # seconds: for a port to open, for a server to hang up


def main() -> None:
    """Wait for the port, then say in one line what was found."""
    port, until = int(sys.argv[1]), time.time() + PATIENCE
    while time.time() < until:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
                print(knock(plain))
                return
        except (ConnectionError, TimeoutError):
            time.sleep(0.5)
    print("nobody listens")


def knock(plain: socket.socket) -> str:
    """Shake hands without a certificate, then wait for what the server says to that."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"])  # without which gRPC hangs up on everybody
    try:
        with context.wrap_socket(plain) as secured:
            secured.settimeout(VERDICT)
            try:
                return "TLS, no certificate asked for" if secured.recv(1) else "TLS, hangs up on strangers"
            except TimeoutError:
                return "TLS, no certificate asked for"
    except ssl.SSLError as error:
        reason = (error.reason or "").lower()
        if "certificate" in reason:
            return "TLS, a certificate is needed"
        return "no TLS" if "wrong_version" in reason or "record" in reason else f"no TLS ({reason})"
    except (OSError, ConnectionError):
        return "no TLS"


if __name__ == "__main__":
    main()
