"""Keys for one run: each site makes an X25519 key, shows it in its signed 'hello', and shares one with each.

The id of the run is a hash of everybody's 'hello', and so of every site's fresh nonce and of the job; all
have signed that they hold the same. Keys of one run are worthless in any other, and whoever shows two sites
two keys begins with neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from ....errors import NeighbourFailed
from ....masked.masks import PairKeys, pair_key
from ...wire.form import NONCE, STAMP


def new_secret() -> bytes:
    """A private key for this run, from the system's randomness."""
    return X25519PrivateKey.generate().private_bytes_raw()


def public_of(secret: bytes) -> bytes:
    """What a site shows of its private key."""
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def key_shown(hello: bytes) -> bytes:
    """The public key in the message of a 'hello'."""
    return hello[STAMP.size + NONCE :]


def agree(
    site: int,
    secret: bytes,
    shown: Mapping[int, bytes],
    *,
    run: bytes,
    names: Sequence[str],
    partners: Sequence[int],
) -> PairKeys:
    """The keys that a site shares with its partners in round 1, from what each has shown."""
    private, keys = X25519PrivateKey.from_private_bytes(secret), {}
    for partner in partners:
        try:
            shared = private.exchange(X25519PublicKey.from_public_bytes(shown[partner]))
        except ValueError as error:
            raise NeighbourFailed(
                f"{names[partner]} showed a key for this run that is none; nothing was released."
            ) from error
        keys[partner] = pair_key(shared, run, names[site], names[partner])
    return PairKeys(site, keys, run=run)
