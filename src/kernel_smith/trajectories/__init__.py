"""From the steps of runs to data sets that a model can be trained on."""
