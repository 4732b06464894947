"""Real sites, peer to peer, over Eclipse Zenoh: each on its own machine, with its own data and keys.

job.py site.py       the two files: what all sites share, and what is this site's alone
frame.py trust.py    what leaves a site, and when an arriving frame is believed
keys.py              keys, signing requests, an authority to throw away
rehearsal.py         a whole network on this machine, to try things out
"""
