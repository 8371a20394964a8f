"""The StepGraph: one step of a model before lowering."""
