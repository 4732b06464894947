"""The sentences of the page: what each package is better at, and how each table was made."""

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
        "trains any model that Python can train, on thousands of clients that come and go, including "
        "phones, with strategies for nearly every published method. If a client is missing, a round ends "
        "with the clients that answered (`FedAvg` ignores failures); our sites wait for the missing one "
        "unless the job has a `quorum`. Its accountant protects a whole client. This promise is stronger "
        "than one about a record, and with many clients it is cheap. Choose Flower for neural networks, "
        "for many small clients, or if a server may be trusted. The times here include a new process for "
        "every message, which is its default. With five sites a whole client is a fifth of all data, and "
        "users must calibrate the noise for a record themselves, as we did below."
    ),
    "nvflare": (
        "is made for hospitals and companies that run it for years. It has a provisioning tool with "
        "certificates for every site, roles and audit logs, many jobs on one network, homomorphic "
        "encryption and confidential computing. Even its proof of concept rejects clients without a "
        "certificate of its own authority. Its recipe for logistic regression sends Hessians and finds "
        "the optimum of all rows. Choose it for an installation that serves many projects, or if "
        "gradients are not secret. Its guide to differential privacy adds Opacus to the site's script. "
        "Its own filter counts the cost of updates that are clipped number by number."
    ),
    "appfl": (
        "is made for supercomputers: it sends work through Globus Compute and MPI as well as gRPC, has "
        "asynchronous schedulers, compresses large models, and includes torch, scikit-learn and Opacus. "
        "Choose it for deep models across computing centres. Its Laplace and Gaussian noise take one "
        "epsilon per round and report no total. Opacus, which runs at each site separately, reports what "
        "the training has cost so far."
    ),
    "disropt": (
        "is a toolbox for distributed optimisation: constraints, subgradients, dual decomposition, mixed "
        "integers and set membership, over any graph, also asynchronously, for any convex problem. Choose "
        "it to study such algorithms, and for problems that are not regularised losses. It solves each "
        "step with a general solver and has no privacy. Its processes communicate over MPI, so it is for "
        "one cluster and not for parties that distrust each other."
    ),
    "diffprivlib": (
        "is the simplest choice if one party already holds every row: scikit-learn's classes with an "
        "epsilon, for logistic regression, trees, naive Bayes, k-means, PCA, histograms and quantiles. "
        "Its guarantee is pure (delta = 0). Choose it if there is nothing to distribute. Its regulariser "
        "must be chosen well, and the epsilon does not cover choosing it on the data."
    ),
}

SUMMARY = (
    "The accuracy of taciturn without privacy comes from `simulate`, because real sites always add noise. "
    "Times and bytes are for the other packages without noise and for taciturn with noise. For Flower and "
    "APPFL we calibrated the smallest noise that protects a record. disropt solved a different problem; "
    "see Solving. Privacy says whom each private model trusts, and Faults says which settings were "
    "changed for a fault."
)

WEAKER = (
    "taciturn is the wrong choice for most models that are not linear (trees; a neural network only as "
    "your own program); for more than a few hundred sites; if sites leave during a run without a "
    "`quorum`, because the others then wait or stop; and for runs between real sites without any noise. "
    "It needs the number of rows of each site in advance, and a public bound on every row."
)

# From the documentation and source code of the packages; handshakes and counters were measured.
TLS = {
    "taciturn": "on, mutual, cannot be switched off",
    "flwr": "on, unless `--insecure`, which its first deployment guide uses; clients are authenticated with "
    "`--enable-supernode-auth` (its guides `Enable TLS connections`, `Authenticate SuperNodes`)",
    "nvflare": "on, mutual, in all startup kits (its page `Provisioning in NVIDIA FLARE`)",
    "appfl": "off, as in its examples (`use_ssl` of `grpc_configs`)",
}
COUNTERS = {
    "taciturn": "at each site, in a ledger on disk",
    "flwr": "at the server, so a crash of a client does not affect it; in memory, with `state_dict` for "
    "users who save it",
    "nvflare": "at the client, in the memory of its filter `SVTPrivacy` (or of Opacus, in the site's script)",
    "appfl": "at the client, in the memory of Opacus; nothing counts its Laplace and Gaussian noise",
}
LOCKED = "always on"

# For packages without a row in the section Privacy.
ELSEWHERE = {"nvflare": "not run (Opacus: see APPFL)"}
COUNTED = {
    "taciturn": "a record, the whole run",
    "flwr": "a client, the whole run; for local noise it prints no epsilon",
    "nvflare": "an update (`SVTPrivacy`); a record, one site's training (Opacus)",
    "appfl": "a record, one site's training (Opacus); for other noise it prints no epsilon",
    "diffprivlib": "a record, the fit, delta = 0",
}

# The sections in which each peer takes part.
EXPECTED = {
    "flwr": ("work", "privacy", "kill", "stranger", "late", "budget", "guarded"),
    "nvflare": ("work", "kill", "stranger", "late", "budget", "strict"),
    "appfl": ("work", "privacy", "kill", "stranger", "late", "budget", "guarded"),
    "disropt": ("solving",),
    "diffprivlib": ("work", "privacy"),
}

# How each section was made.
WORK = (
    "All packages ran as real processes on loopback: one server and five clients, or five peers. The "
    "other packages train without noise. Our real sites always add noise; `simulate` can leave it out.",
    "- round: what the package calls a round. This is a step of descent for taciturn, a Newton step for "
    "FLARE, and a complete solution at every site for Flower and APPFL.",
    "- s a round: the average from the end of the first round to the end of the last. If one of our plans "
    "has too few rounds to time, we time it with twenty rounds.",
    "- s to the model: from the start of the first process until the model is available. s in all: "
    "including later rounds.",
    "- CPU: the total of all processes. Other work on the machine disturbs this number least.",
    "- bytes: all traffic on the loopback of the namespace, in both directions, with headers and TLS, per "
    "site and round.",
    "- MB: the largest memory of one process. processes: all processes that the run ever started.",
    "- install: the size of the package and everything that it needs, without Python (APPFL's torch as on "
    "PyPI, with CUDA).",
    "- lines a user writes: the lines of `benchmarks/peers/adapters`; for taciturn, the job and one "
    "site's file.",
)
PRIVACY = (
    "The table shows models at (1, 10⁻⁵) for the whole run, with ten seeds (five for Flower and APPFL). "
    "Our settings come from the planner and were never tuned.",
    "- settings: the other packages use the best settings of a grid, chosen on the test rows, which "
    "favours them. The grid contains rounds with momentum, and steps; small steps and clips for the noise "
    "of a whole client; C; epochs and steps of Opacus. Momentum and the mean of the last models use only "
    "what was already sent, so they cost nothing.",
    "- noise: if a package does not count the cost of a record, we use our accountant to find the "
    "smallest noise that a record needs, which favours the package too. The noise passes through the "
    "package's own classes, without the network.",
    "- prints: the epsilon that the package itself reports at these settings, and its unit. Flower uses "
    "Rényi divergence, which gives a little more than the exact number.",
    "- whole run: the cost of the same noise for a record over the whole run by our accountant, rounded "
    "up (for Opacus by its own accountant, for adding or removing a record). Noise for a whole client "
    "costs a record almost nothing, and ruins the model.",
    "- not run: FLARE with Opacus, as in its guide, because it would equal the row of APPFL with Opacus. "
    "Also not run: shared noise under Flower's SecAgg+ or FLARE's homomorphic encryption. Both hide "
    "single updates as our masks do, but users must divide the noise among the sites themselves.",
)
AT_LEAST = (
    "- at least: the largest number of rounds or epochs that was tried beat the next smaller one by more "
    "than the spread between seeds."
)
FAULTS = (
    "These are the same runs with a fault. Ours is a masked run with a seed, so that models can be compared.",
    "- kill -9: all processes of one party are killed at once, soon after the first round, and started "
    "again two seconds later.",
    "- an unauthenticated client: a sixth client with inverted labels connects without an invitation. "
    "taciturn and FLARE do not talk to its program at all, so for them we present its certificate, signed "
    "by another authority. For Flower and APPFL it is a client like any other; how far it moves the model "
    "depends on which client it replaces in the last round.",
    "- same: the model equals that of the undisturbed run up to a thousandth of its length. For Flower "
    "and APPFL each round starts from scratch, so a round without the fifth site does not affect the last "
    "one. The distance of another model is also a share of that length.",
    "- no end: a run that does not end is stopped after the seconds shown.",
    "- authentication enabled: for Flower, TLS and registered keys; for APPFL, TLS and a shared token "
    "(`NaiveAuthenticator`, which its documentation recommends only for demonstrations; its Globus "
    "authentication needs the internet).",
    "- counter of epsilon: the package's own counter over four rounds. It is killed after two rounds and "
    "started again. The table shows what it then reports, of what was spent (for taciturn: in the run "
    "that was killed).",
)
FLARE_BACK = (
    "A FLARE site that comes back registers again, but according to its source code a job is sent only at "
    "its start, and a round of its recipe waits for all sites without a limit. Either the controller is "
    "configured with the number of replies that are enough (`min_responses`, "
    "`wait_time_after_min_received`), and the others finish the job, or the job is submitted again from "
    "the saved weights."
)
SOLVING = (
    "Both packages run 50 rounds of ADMM on a ring without noise, on every fourth row, with the mean loss "
    "plus 0.001 ‖f‖² / 2. The distance is that of the worst site from the optimum of all these rows, as a "
    "share of its length. Each package uses the best of five penalties (disropt's was chosen on every "
    "twentieth row). disropt runs five MPI processes over shared memory and solves each step with cvxpy. "
    "`simulate` is one process with a solver that is made for this problem. So this compares purposes as "
    "much as programs."
)
