"""Questions that sites answer together: the query, the columns and the answer of each kind."""
