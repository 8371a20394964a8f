"""The StepGraph: one step of a model before lowering.

Types in `step` (ops by group in `dense`, `placed`, `heads`, `mixture`, `recurrent`; what they name
in `tensor`), names of an op in `refs`, shapes in `infer`, the checker in `check` (an op's rows in
`check_{group}`), the text form in `text` and `parse`, and a `builder`.
"""
