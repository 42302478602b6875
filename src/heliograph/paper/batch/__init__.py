"""Learning messages to z of the logistic factor in batch: what experiments 1 and 2 and the appendix on features share."""
