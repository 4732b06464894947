"""Sites of a real network: each runs on its own machine, with its own rows and keys, and without a server.

The sites exchange messages directly, over the messaging system Eclipse Zenoh.

files/      the files that the owner of a site provides: job.toml, site.toml, rows and keys
state/      what a site keeps for its owner: the account of the budget, approvals, keys in memory
protocol/   what a site does, as a state machine: it takes events, returns effects, and does no I/O
wire/       TLS and access rules of Zenoh, checks of signatures, reports about waiting sites
transport/  the protocol's messages over Zenoh
rounds/     the driver, which runs the protocol with a real disk and network; the state file; the results
watch/      the check before a run; the status and the metrics of a running site
trial/      a whole network on this machine, to try things out
"""
