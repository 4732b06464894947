"""Privacy audits: measured lower bounds on epsilon, and the reconstruction attack of the paper."""
