"""Real sites, peer to peer, over Eclipse Zenoh: each on its own machine, with its own data and keys.

job.py site.py         the two files: what all sites share, and what is this site's alone
difference.py account.py  in what two jobs differ; one budget for one table, over all jobs
frame.py trust.py      what leaves a site, and when an arriving frame is believed
keys.py                keys, signing requests, an authority to throw away
store.py               ledger, state and outbox in one file, on disk before anything is sent
config.py session.py   Zenoh: mutual TLS, default deny, push and pull
mailbox.py refusals.py the neighbours' frames for this round and the next; all else, said once
zenoh_log.py meter.py  what Zenoh turns away before our code is asked; who crowds the door
prepare.py driver.py   all that a site needs, and its rounds
opening.py evidence.py what the others know of this site, before it releases; what ends a run for good
waiting.py probe.py    for whom, how long, and why nobody answers
ending.py results.py   the same average everywhere: model.py, certificate, signed statement
checkup.py status.py   before a run, and in the middle of one; page.py on loopback
relay.py               a router between sites that may only connect outward
templates.py           files to begin with
rehearsal.py local.py  a whole network on this machine, to try things out
"""
