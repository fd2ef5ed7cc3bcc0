"""Two of RecSim's environments, with documents that are drawn when somebody looks at them."""
