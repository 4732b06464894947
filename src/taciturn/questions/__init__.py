"""Questions that sites answer together: what each kind asks, of which columns, and what its totals say."""
