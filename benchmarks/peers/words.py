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
    "Without privacy our number is that of `simulate`: between real sites there is always noise. disropt's "
    "column is of ADMM on every fourth row, by five processes on one machine. Whom a private model trusts "
    "is said under Privacy, and what was set for a fault under Faults."
)

WEAKER = (
    "Where taciturn is the wrong choice: models that are not linear (no neural network, no trees); more "
    "than some hundred sites; sites that leave in the middle, since a run waits for all of them, or ends; "
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
    "for whoever saves it",
    "nvflare": "at the client, in the memory of its filter `SVTPrivacy` (or of Opacus, in the site's script)",
    "appfl": "at the client, in the memory of Opacus; nothing counts its Laplace and Gaussian noise",
}
LOCKED = "always on"

# Where a package has no row of its own under Privacy.
ELSEWHERE = {"nvflare": "by Opacus, as in APPFL"}
UNITS = {"nvflare": "an update (`SVTPrivacy`); a record (Opacus)"}

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
    "Real processes on loopback, one server and five clients, or five peers. A round is what the package "
    "calls one: a step of descent here, a Newton step at FLARE, a whole solution of every site at Flower and "
    "APPFL. Its seconds: from the end of the first to the end of the last, on average (a dash where no two "
    "ends were seen apart: a plan of ours may have two rounds, milliseconds from each other). To the model: "
    "from the first process until the model is there, with all starting; in all: with the rounds after that. "
    "CPU: of all processes together, which other work on the machine disturbs least. Bytes: what the "
    "namespace's loopback carried, headers and TLS included, both ways, per site and round. Memory: the most "
    "that one process held. Install: the files of the peer with all that it needs, without Python (APPFL's "
    "torch as PyPI has it, with CUDA). Lines: what a user writes, as in `benchmarks/peers/adapters`. The "
    "peers train without noise here; our real sites never do, but `simulate` does."
)
PRIVACY = (
    "At (1, 10⁻⁵) for the whole run, ten seeds (Flower and APPFL five). Ours are planned, never tuned. A "
    "peer takes the best of a grid on the test rows (rounds with momentum, and steps; small steps and clips "
    "for the noise of a whole client; C; Opacus's epochs and steps), and where it counts in another way our "
    "accountant gives it the least noise that a record needs: both flatter it. Momentum and the mean of the "
    "last models use what was already sent, and cost nothing. `at least`: the most rounds or epochs that "
    "were tried beat the next fewer by more than one seed differs from another. `prints` is what the package "
    "itself says at these settings, and of what (Flower counts by Rényi's divergence, a little above the "
    "exact number); `whole run` is what the same noise costs a record over the run by our accountant, "
    "rounded up (Opacus: by its own, for a record more or less). The peers' noise "
    "runs through their own classes, without the network. FLARE with Opacus, as its guide has it, would be "
    "the row of APPFL and Opacus, and was not run again. Flower's SecAgg+ and FLARE's homomorphic encryption "
    "hide single updates as our masks do; to share the noise of a sum among sites under them is left to the "
    "user, and was not tried."
)
FAULTS = (
    "The same runs (ours: a masked one, rehearsed with a seed so that models can be compared). One party is "
    "killed with -9, all its processes at once, after the first round and started again two seconds later; "
    "or comes 20 seconds late; or a sixth party, whose labels are turned round, connects without having "
    "been asked (at ours: under the name of a site, with a key of another authority; at FLARE: with the "
    "startup kit of another network at the same address; at Flower and APPFL as any client does). `same` is "
    "the model of the undisturbed run to a thousandth of its length: replies are summed as they come, and "
    "that is all that differs. How far another model is away is a share of that length, too. Who does not "
    "end is stopped after the seconds shown. A site of FLARE that comes back registers, but by its source a "
    "job is given out only when it starts, and a round of its recipe waits for all sites without a limit: "
    "the others finish it, if its controller is told how many replies are enough (`min_responses`, "
    "`wait_time_after_min_received`), or it is submitted again from the saved weights. Own locks: at "
    "Flower, TLS and registered keys; at APPFL, TLS and a token that all share "
    "(`NaiveAuthenticator`, by its own words for demonstrations; its Globus needs the internet). A counter "
    "of epsilon is the package's own, over four rounds, killed after two and started again: what it says, of "
    "what was spent (ours: of the run that was killed)."
)
SOLVING = (
    "50 rounds of ADMM on a ring, no noise, mean loss with 0.001 ‖f‖² / 2, every fourth row. Distance: of "
    "the worst site from the optimum of all these rows, as a share of its length. Each side has the best "
    "of five penalties (disropt's chosen on every twentieth row). disropt runs five MPI processes, over "
    "shared memory, and solves each step with cvxpy; `simulate` is one process with a solver for this very "
    "problem, so that this is a comparison of purposes as much as of programs."
)
