"""The stored cases on which we mean to differ from the reference reader, and how."""

DIFFERENCES = {
    "P7/fill-temperature-is-newer-than-this-oracle": "the schema is newer than the reference",
    "P7/fill-top_k-is-newer-than-this-oracle": "the schema is newer than the reference",
    "P7/fill-top_p-is-newer-than-this-oracle": "the schema is newer than the reference",
    "P7/fill-min_p-is-newer-than-this-oracle": "the schema is newer than the reference",
    "P7/fill-seed-is-newer-than-this-oracle": "the schema is newer than the reference",
    "P4/chat-is-newer-than-this-oracle": "the schema is newer than the reference",
    "P9/expr-clamp-is-newer-than-this-oracle": "the schema is newer than the reference",
    "P4/unknown-key-in-expr-is-ignored": "more than an operator in an expression",
    "P4/expr-with-two-operators-takes-the-first": "more than an operator in an expression",
    "P9/arg-f32-overflow-becomes-infinity": "an f32 literal beyond float32",
    "P11/var-as-array": "a struct as an array, an enum as an object",
    "P11/kind-as-map": "a struct as an array, an enum as an object",
    "G5/block-product-wraps": "a product that wraps",
}
