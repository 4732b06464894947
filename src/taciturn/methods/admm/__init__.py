"""The algorithms of the paper [ZKL18]: ADMM, M-ADMM and their perturbations."""
