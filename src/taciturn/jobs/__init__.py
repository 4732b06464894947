"""From files to a model: a training job, its run folder, and the files that it writes."""
