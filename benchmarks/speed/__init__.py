"""Our rounds beside plain loops and bare products."""
