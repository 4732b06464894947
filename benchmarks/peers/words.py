"""What each peer is better at, and when to take it instead of us. No numbers: those are in the tables."""

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
        "them, with strategies for nearly everything that was ever published. It goes on without a client "
        "that is gone, where our sites wait for the one that is missing. Its accountant counts a whole "
        "client, present or not: a stronger promise than one about a record, and with many clients a cheap "
        "one. Take Flower for neural networks, for many small clients, or where a server may be trusted. "
        "With five sites a whole client is a fifth of all data, and a promise about records is yours to "
        "work out."
    ),
    "nvflare": (
        "is made for hospitals and firms that run it for years: a provisioning tool with certificates for "
        "every site, roles and audit logs, many jobs on one network, homomorphic encryption, and mutual TLS "
        "even in its proof of concept. Its recipe for logistic regression sends Hessians and walks to the "
        "optimum of all rows itself. Take it for an installation that has to serve many projects, or where "
        "gradients are no secret. Its privacy filter counts what updates cost that are clipped number by "
        "number; it is not calibrated to a budget for a run."
    ),
    "appfl": (
        "is at home on supercomputers: it sends work through Globus Compute and MPI as well as gRPC, has "
        "schedulers that wait for nobody, compresses large models, and carries torch, scikit-learn and "
        "Opacus with it. Take it for deep models across computing centres. Its Laplace and Gaussian "
        "noise take one number for a round and report no total; only Opacus, one site at a time, says "
        "what the training cost."
    ),
    "disropt": (
        "is a workbench for distributed optimisation: constraints, subgradients, dual decomposition, "
        "mixed integers, set membership, over any graph, asynchronous too, for whatever convex problem "
        "one can write down. Take it to study such algorithms, and for problems that are not regularised "
        "losses. It solves each step with a general solver and knows nothing of privacy, and its "
        "processes talk over MPI, so that it is for one cluster and not for parties that distrust each "
        "other."
    ),
    "diffprivlib": (
        "is the simplest of all where one party already holds every row: scikit-learn's classes with an "
        "epsilon, and not only logistic regression but trees, naive Bayes, k-means, PCA, histograms and "
        "quantiles. Its guarantee is pure, delta = 0. Take it when there is nothing to distribute. The "
        "regulariser has to be chosen well, and choosing it on the data is not in the epsilon."
    ),
}

WEAKER = (
    "Where taciturn is the wrong choice: models that are not linear (no neural network, no trees); more "
    "than some hundred sites; sites that leave in the middle, since a run waits for all of them, or "
    "ends; a run without any noise at all between real sites. It needs the number of rows of each site "
    "beforehand, and a public bound on every row."
)

# From their documentation and source; the doors of the runs above are measured.
TLS = {
    "taciturn": "on, mutual, cannot be switched off",
    "flwr": "on, for the server; its first guide switches it off; clients prove themselves if asked to",
    "nvflare": "on, mutual",
    "appfl": "off",
}
BUDGET = {
    "flwr": "by the server, in memory, where an accountant was set up",
    "nvflare": "no: the filter's count was in the process that died",
    "appfl": "no: the count of Opacus was in the process that died",
}

# The sections that each peer has a part in.
EXPECTED = {
    "flwr": ("work", "privacy", "kill", "stranger", "late"),
    "nvflare": ("work", "kill"),
    "appfl": ("work", "privacy", "kill", "stranger", "late"),
    "disropt": ("solving",),
    "diffprivlib": ("work", "privacy"),
}
