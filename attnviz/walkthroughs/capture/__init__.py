"""From one run of a model to the numbers of a walkthrough."""
