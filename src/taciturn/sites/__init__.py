"""Real sites, peer to peer, over Eclipse Zenoh: each on its own machine, with its own data and keys.

files/      job.toml and site.toml, rows, keys and revocations: the files that the owner of a site provides
state/      what a site keeps for its owner: account, approval, high-water mark, keys in volatile memory
protocol/   what a site does, as a state machine: events in, effects out, no I/O
wire/       TLS and access rules of Zenoh, trust in signatures, refusals, reports about waiting sites
transport/  the protocol over Zenoh
rounds/     the driver, which runs the protocol on a real disk and network; store, results, evidence
watch/      the check before a run; the status and the metrics of a running site
trial/      a whole network on this machine, to try things out
"""
