"""The StepGraph: one step of a model before lowering.

Types in `step`, names of an op in `refs`, shapes in `infer`, the checker in `check`, the
text form in `text` and `parse`, and a `builder`.
"""
