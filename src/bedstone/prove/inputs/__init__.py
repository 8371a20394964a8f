"""Inputs of a Workload: which values make sense, and the values of one seed.

`recipe` names the kinds of values, `roles` says which one an input wants, `sizes` proposes sizes
where no Workload states them, `make` makes the tensors.
"""
