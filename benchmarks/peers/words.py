"""The sentences of the page: what each peer is better at, how each table was made. Numbers are in tables."""

NAMES = {
    "taciturn": "taciturn",
    "flwr": "Flower",
    "nvflare": "NVIDIA FLARE",
    "appfl": "APPFL",
    "disropt": "disropt",
    "diffprivlib": "diffprivlib",
}

PARAGRAPHS = {
    "flwr": (
        "trains any model that Python can train, on thousands of clients that come and go, phones among "
        "them, with strategies for nearly everything that was ever published. A round whose client is gone "
        "ends with those that answered (`FedAvg` leaves failures out), where our sites wait for the one "
        "that is missing. Its accountant counts a whole client, present or not: a stronger promise than one "
        "about a record, and with many clients a cheap one. Take Flower for neural networks, for many small "
        "clients, or where a server may be trusted. Its seconds here are those of a new process for every "
        "message, which is its default. With five sites a whole client is a fifth of all data, and noise for "
        "a record is yours to work out, as we did below."
    ),
    "nvflare": (
        "is made for hospitals and firms that run it for years: a provisioning tool with certificates for "
        "every site, roles and audit logs, many jobs on one network, homomorphic encryption, confidential "
        "computing. Even its proof of concept lets nobody in who has no certificate of its own authority. "
        "Its recipe for logistic regression sends Hessians and walks to the optimum of all rows itself. Take "
        "it for an installation that has to serve many projects, or where gradients are no secret. Its guide "
        "to differential privacy puts Opacus into the site's script; its own filter counts what updates cost "
        "that are clipped number by number."
    ),
    "appfl": (
        "is at home on supercomputers: it sends work through Globus Compute and MPI as well as gRPC, has "
        "schedulers that wait for nobody, compresses large models, and carries torch, scikit-learn and "
        "Opacus with it. Take it for deep models across computing centres. Its Laplace and Gaussian noise "
        "take one number for a round and report no total; Opacus, at each site for itself, says what the "
        "training has cost so far."
    ),
    "disropt": (
        "is a workbench for distributed optimisation: constraints, subgradients, dual decomposition, mixed "
        "integers, set membership, over any graph, asynchronous too, for whatever convex problem one can "
        "write down. Take it to study such algorithms, and for problems that are not regularised losses. "
        "It solves each step with a general solver and knows nothing of privacy, and its processes talk "
        "over MPI, so that it is for one cluster and not for parties that distrust each other."
    ),
    "diffprivlib": (
        "is the simplest of all where one party already holds every row: scikit-learn's classes with an "
        "epsilon, and not only logistic regression but trees, naive Bayes, k-means, PCA, histograms and "
        "quantiles. Its guarantee is pure, delta = 0. Take it when there is nothing to distribute. The "
        "regulariser has to be chosen well, and choosing it on the data is not in the epsilon."
    ),
}

SUMMARY = (
    "Without privacy our number is that of `simulate`: between real sites there is always noise. Seconds and "
    "bytes are those of the peers without noise and of ours with it. The private models of Flower and APPFL "
    "have the least noise that a record needs, which we worked out for them. disropt's column is of another "
    "problem, under Solving. Whom a private model trusts is said under Privacy, and what was set for a fault "
    "under Faults."
)

WEAKER = (
    "Where taciturn is the wrong choice: models that are not linear (no neural network, no trees); more "
    "than a few hundred sites; sites that leave in the middle, since a run waits for all of them, or ends; "
    "a run without any noise at all between real sites. It needs the number of rows of each site "
    "beforehand, and a public bound on every row."
)

# From their documentation and sources; what the doors and counters of the runs did is measured.
TLS = {
    "taciturn": "on, mutual, cannot be switched off",
    "flwr": "on, unless `--insecure`, which its first deployment guide uses; who may come is asked with "
    "`--enable-supernode-auth` (its guides `Enable TLS connections`, `Authenticate SuperNodes`)",
    "nvflare": "on, mutual, in all startup kits (its page `Provisioning in NVIDIA FLARE`)",
    "appfl": "off, as in its examples (`use_ssl` of `grpc_configs`)",
}
COUNTERS = {
    "taciturn": "at each site, in a ledger on disk",
    "flwr": "at the server, so that the death of a client does not touch it; in memory, with `state_dict` "
    "for users who save it",
    "nvflare": "at the client, in the memory of its filter `SVTPrivacy` (or of Opacus, in the site's script)",
    "appfl": "at the client, in the memory of Opacus; nothing counts its Laplace and Gaussian noise",
}
LOCKED = "always on"

# Where a package has no row of its own under Privacy.
ELSEWHERE = {"nvflare": "not run (Opacus: see APPFL)"}
COUNTED = {
    "taciturn": "a record, the whole run",
    "flwr": "a client, the whole run; local noise: prints none",
    "nvflare": "an update (`SVTPrivacy`); a record, one site's training (Opacus)",
    "appfl": "a record, one site's training (Opacus); other noise: prints none",
    "diffprivlib": "a record, the fit, delta = 0",
}

# The sections that each peer has a part in.
EXPECTED = {
    "flwr": ("work", "privacy", "kill", "stranger", "late", "budget", "guarded"),
    "nvflare": ("work", "kill", "stranger", "late", "budget", "strict"),
    "appfl": ("work", "privacy", "kill", "stranger", "late", "budget", "guarded"),
    "disropt": ("solving",),
    "diffprivlib": ("work", "privacy"),
}

# How each section was made.
WORK = (
    "Real processes on loopback: one server and five clients, or five peers. The peers train without noise. "
    "Our real sites always add noise; `simulate` can leave it out.",
    "- a round: what the package calls one. A step of descent here, a Newton step at FLARE, a whole solution "
    "of every site at Flower and APPFL.",
    "- its seconds: from the end of the first round to the end of the last, on average. A plan of ours with "
    "too few rounds to be timed is timed with twenty of them.",
    "- to the model: from the first process until the model is there. In all: with the rounds after that.",
    "- CPU: of all processes together; other work on the machine disturbs it least.",
    "- bytes: what the namespace's loopback carried, headers and TLS included, both ways, per site and "
    "round.",
    "- MB: the most that one process held. Processes: all that the run ever started.",
    "- install: the files of the peer with all that it needs, without Python (APPFL's torch as PyPI has it, "
    "with CUDA).",
    "- lines a user writes: those of `benchmarks/peers/adapters`; of ours, the job and one site's file.",
)
PRIVACY = (
    "At (1, 10⁻⁵) for the whole run, ten seeds (Flower and APPFL five). Ours are planned, never tuned.",
    "- settings: a peer takes the best of a grid on the test rows (rounds with momentum, and steps; small "
    "steps and clips for the noise of a whole client; C; Opacus's epochs and steps), which flatters it. "
    "Momentum and the mean of the last models use what was already sent, and cost nothing.",
    "- noise: where a peer counts in another way, our accountant gives it the least that a record needs, "
    "which flatters it too. It runs through the peer's own classes, without the network.",
    "- prints: what the package itself says at these settings, and of what. Flower counts by Rényi's "
    "divergence, a little above the exact number.",
    "- whole run: what the same noise costs a record over the run by our accountant, rounded up (Opacus: by "
    "its own, for a record more or less). Noise for a whole client costs a record almost nothing, and "
    "spoils the model.",
    "- not run: FLARE with Opacus, as its guide has it, which would be the row of APPFL and Opacus; noise of "
    "a sum that sites share under Flower's SecAgg+ or FLARE's homomorphic encryption, which hide single "
    "updates as our masks do: to share it is left to the user.",
)
AT_LEAST = (
    "- at least: the most rounds or epochs that were tried beat the next fewer by more than one seed differs "
    "from another."
)
FAULTS = (
    "The same runs (ours: a masked one, rehearsed with a seed so that models can be compared).",
    "- kill -9: of all processes of one party at once, soon after the first round; it is started again two "
    "seconds later.",
    "- a stranger: a sixth party, whose labels are turned round, connects without having been asked. At ours "
    "and at FLARE his own program would not talk to this network, so his certificate, of another authority, "
    "is presented instead. At Flower and APPFL he comes as any client does; how far he moves the "
    "model depends on whose place he takes in the last round.",
    "- same: the model of the undisturbed run to a thousandth of its length. At Flower and APPFL each round "
    "starts from scratch, so a round without the fifth site leaves no trace in the last one. How far another "
    "model is away is a share of that length, too.",
    "- no end: who does not end is stopped after the seconds shown.",
    "- own locks: at Flower, TLS and registered keys; at APPFL, TLS and a token that all share "
    "(`NaiveAuthenticator`, by its own words for demonstrations; its Globus needs the internet).",
    "- a counter of epsilon: the package's own, over four rounds, killed after two and started again: what "
    "it says, of what was spent (ours: of the run that was killed).",
)
FLARE_BACK = (
    "A site of FLARE that comes back registers, but by its source a job is given out only when it starts, "
    "and a round of its recipe waits for all sites without a limit: the others finish it, if its controller "
    "is told how many replies are enough (`min_responses`, `wait_time_after_min_received`), or it is "
    "submitted again from the saved weights."
)
SOLVING = (
    "50 rounds of ADMM on a ring, no noise, mean loss with 0.001 ‖f‖² / 2, every fourth row. Distance: of "
    "the worst site from the optimum of all these rows, as a share of its length. Each side has the best "
    "of five penalties (disropt's chosen on every twentieth row). disropt runs five MPI processes, over "
    "shared memory, and solves each step with cvxpy; `simulate` is one process with a solver for this very "
    "problem, so that this is a comparison of purposes as much as of programs."
)
