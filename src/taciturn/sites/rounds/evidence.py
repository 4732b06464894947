"""Evidence: what a site does when the run must not go on, and what it then knows to have been released.

Two frames that contradict each other, both signed by one site, are kept, shown to the neighbours, who check
them and do the same, and end the run for everybody with that site's name. A frame of this site that only a
neighbour knows of ends it for this site: its state was lost, put back from a backup, or copied.
"""

from __future__ import annotations

import logging
from typing import NoReturn

from ...errors import Contradiction, StateLost
from ..wire.mailbox import Caught, Forgotten
from .exchange import Exchange

log = logging.getLogger("taciturn.site")


def stop_for(trouble: Caught | Forgotten, exchange: Exchange) -> NoReturn:
    """End the run, with what is known about why."""
    if isinstance(trouble, Forgotten):
        raise StateLost(
            f"{trouble.holder} holds a frame of this site, of round {trouble.letter.frame.t}, that this site "
            "does not know of: its `state` was lost, put back from a backup, or copied."
        )
    raise Contradiction(f"{trouble.owner} signed two frames that contradict each other.")
