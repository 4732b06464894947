"""From files to a model: a training job, its run folder, and what is written."""
