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
        "with the clients that answered (`FedAvg` ignores failures); the sites of taciturn wait for the "
        "missing site unless the job has a `quorum`. Flower's accountant protects a whole client. This "
        "promise is stronger than one about a record, and with many clients it costs little accuracy. "
        "Choose Flower for neural networks, for many small clients, or if all parties trust a server. The "
        "times on this page include a new process for every message, which is Flower's default. With five "
        "sites a whole client is a fifth of all data, and users must calibrate the noise for a record "
        "themselves, as we did under [Privacy](#privacy)."
    ),
    "nvflare": (
        "is made for hospitals and companies that run it for years. It has a provisioning tool with "
        "certificates for every site, roles and audit logs, many jobs on one network, homomorphic "
        "encryption and confidential computing. Even its proof of concept rejects clients without a "
        "certificate of its own authority. Its recipe for logistic regression sends Hessians and finds the "
        "optimum of all rows. Choose FLARE for an installation that serves many projects, or if gradients "
        "are not secret. Its guide to differential privacy adds Opacus to the site's script. FLARE's own "
        "filter, `SVTPrivacy`, clips each number of an update and counts a cost for each update."
    ),
    "appfl": (
        "is made for supercomputers: it sends work through Globus Compute and MPI as well as gRPC, has "
        "asynchronous schedulers, compresses large models, and includes torch, scikit-learn and Opacus. "
        "Choose it for deep models across computing centres. Its Laplace and Gaussian noise take one "
        "epsilon per round, and APPFL reports no total. Opacus, which runs at each site separately, reports "
        "what the training of that site has cost so far."
    ),
    "disropt": (
        "is a toolbox for distributed optimisation: constraints, subgradients, dual decomposition, mixed "
        "integers and set membership, over any graph, also asynchronously, for any convex problem. Choose "
        "it to study such algorithms, and for problems other than minimising a regularised loss. It solves "
        "each step with a general solver and offers no privacy. Its processes communicate over MPI, so it "
        "is for one cluster and not for parties that distrust each other."
    ),
    "diffprivlib": (
        "is the simplest choice if one party already holds every row: it has scikit-learn's classes with an "
        "epsilon, for logistic regression, trees, naive Bayes, k-means, PCA, histograms and quantiles. Its "
        "guarantee is pure (delta = 0). Choose it if there is nothing to distribute. Its regulariser must "
        "be chosen well, and the epsilon does not cover a choice that uses the data."
    ),
}

SUMMARY = (
    "The accuracy of taciturn without privacy comes from `simulate`, because real sites always add noise. "
    "Times and bytes were measured without noise for the other packages, and with noise for taciturn. For "
    "Flower and APPFL we calibrated the smallest noise that protects a record. disropt solved a different "
    "problem, which [Solving](#solving) describes. [Privacy](#privacy) says whom each private model trusts, "
    "and [Faults](#faults) says which settings we changed to test a fault."
)

WEAKER = (
    "taciturn is the wrong choice for most models that are neither linear nor additive: it has no trees, and "
    "a neural network only as a program of your own. It is also the wrong choice for more than a few hundred "
    "sites, and for runs between real sites without any noise. If sites may leave during a run, its job "
    "needs a `quorum`; otherwise the other sites wait or stop. taciturn needs the number of rows of each "
    "site in advance, and a public bound on every row."
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
    "flwr": "at the server, so a crash of a client does not affect it; in memory, but users can save it "
    "(`state_dict`)",
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
    "All packages ran as real processes on loopback: one server and five clients, or five peers. The other "
    "packages train without noise. Real sites of taciturn always add noise; `simulate` can leave it out.",
    "- *round*: what the package calls a round. This is a step of descent for taciturn, a Newton step for "
    "FLARE, and a complete solution at every site for Flower and APPFL.",
    "- *s a round*: the average time of a round in seconds, from the end of the first round to the end of "
    "the last. If a plan of taciturn has too few rounds to time, we time it with twenty rounds.",
    "- *s to the model*: seconds from the start of the first process until the model is available. *s in "
    "all*: seconds until the end of the run, including rounds after the model is available.",
    "- *CPU*: CPU seconds of all processes together. Other work on the machine disturbs this number least.",
    "- *bytes*: all traffic on the loopback of the namespace, in both directions, with headers and TLS, per "
    "site and round.",
    "- *MB*: the largest memory of one process. *processes*: all processes that the run ever started.",
    "- *install*: the size of the package and everything that it needs, without Python (APPFL's torch as on "
    "PyPI, with CUDA).",
    "- *lines a user writes*: the lines of `benchmarks/peers/adapters`; for taciturn, the job and one site's "
    "file.",
)
PRIVACY = (
    "The table shows models at (ε, δ) = (1, 10⁻⁵) for the whole run, with ten seeds (five for Flower and "
    "APPFL). The settings of taciturn come from its planner and were never tuned.",
    "- *setting*: the other packages use the best settings of a grid, chosen on the test rows, which favours "
    "them. For gradient descent the grid contains numbers of rounds and step sizes, with momentum; for the "
    "noise of a whole client it also contains small steps and clipping bounds; for diffprivlib it contains "
    "values of C; for Opacus, epochs and step sizes. Momentum and the mean of the last models use only what "
    "was already sent, so they cost nothing.",
    "- *noise*: if a package does not count the cost of a record, we use our accountant to find the smallest "
    "noise that protects a record, which favours the package too. The package's own classes add the noise; "
    "the network is not used.",
    "- *prints*: the epsilon that the package itself reports at these settings; the next column says what "
    "this epsilon counts. Flower uses Rényi divergence, which gives a slightly larger epsilon than exact "
    "accounting.",
    "- *whole run*: what the same noise costs a record over the whole run by our accountant, rounded up (for "
    "Opacus by its own accountant, for adding or removing a record). Noise for a whole client costs a "
    "record almost nothing, and ruins the model.",
    "- *not run*: FLARE with Opacus, as in its guide, because the result would equal the row of APPFL with "
    "Opacus. We also did not run shared noise under Flower's SecAgg+ or FLARE's homomorphic encryption. "
    "Both hide single updates as the masks of taciturn do, but users must divide the noise among the sites "
    "themselves.",
)
AT_LEAST = (
    "- *at least*: the largest number of rounds or epochs that we tried was better than the next smaller one "
    "by more than the spread between seeds."
)
FAULTS = (
    "We repeated the runs of the first section with a fault. The run of taciturn is a masked run with a "
    "seed, so that its models can be compared.",
    "- *kill -9*: all processes of one party are killed at once, soon after the first round, and started "
    "again two seconds later.",
    "- *an unauthenticated client*: a sixth client with inverted labels connects without an invitation. "
    "taciturn and FLARE accept no connection without a certificate, so for them this client presents a "
    "certificate that another authority has signed. For Flower and APPFL it is a client like any other; how "
    "far it moves the model depends on which client it replaces in the last round.",
    "- *same model*: its distance from the model of the undisturbed run is at most a thousandth of the norm "
    "of that model. For Flower and APPFL each round starts from scratch, so a round without the fifth site "
    "does not affect the last round. For another model, the table gives the distance as a share of the same "
    "norm.",
    "- *no end*: a run that did not end was stopped after the seconds shown.",
    "- *authentication enabled*: for Flower, TLS and registered keys; for APPFL, TLS and a shared token "
    "(`NaiveAuthenticator`, which its documentation recommends only for demonstrations; its Globus "
    "authentication needs the internet).",
    "- *counter of epsilon*: the package's own counter in a run of four rounds. The process with the counter "
    "is killed after two rounds and started again. The table shows the epsilon that the counter reports at "
    "the end, and after 'of' the epsilon that was really spent (for taciturn: in the run that was killed).",
)
FLARE_BACK = (
    "A FLARE site that comes back registers again. But according to FLARE's source code a job is sent to "
    "the sites only when the job starts, and a round of its recipe waits for all sites without a time "
    "limit. So there are two ways to finish the job. The controller can be configured with a number of "
    "replies that are enough (`min_responses`, `wait_time_after_min_received`); then the other sites finish "
    "the job. Or a user submits the job again, and it starts from the saved weights."
)
SOLVING = (
    "Both packages run 50 rounds of ADMM on a ring without noise, on every fourth row, with the mean loss "
    "plus 0.001 ‖f‖² / 2. The column 'distance' shows how far the vector of the worst site is from the "
    "optimum on all these rows, divided by the norm of the optimum. Each package uses the best of five "
    "penalties (disropt's was chosen on every twentieth row). disropt runs five MPI processes over shared "
    "memory and solves each step with cvxpy. `simulate` is one process with a solver that is made for this "
    "problem. So the table shows what the packages are made for as much as how fast they are."
)
