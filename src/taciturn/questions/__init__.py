"""Questions that sites answer together. Each kind of question has its keys, its method and its answer."""
