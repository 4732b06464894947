"""Privacy audits: measured lower bounds on epsilon, and the attack of the paper."""
