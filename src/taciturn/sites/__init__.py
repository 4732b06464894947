"""Real sites, peer to peer, over Eclipse Zenoh: each on its own machine, with its own data and keys.

files/      job.toml and site.toml, rows, keys and revocations: the files that the owner writes
state/      what belongs to the owner: account, approval, high-water mark, keys in volatile memory
protocol/   what a site does, as a state machine: events in, effects out, no I/O
wire/       TLS and access rules of Zenoh, trust in signatures, refusals, reports about waiting sites
transport/  the protocol over Zenoh
rounds/     the driver: the protocol on a real disk and network; store, results, evidence
watch/      check, status, metrics
trial/      a whole network on this machine, to try things out
"""
