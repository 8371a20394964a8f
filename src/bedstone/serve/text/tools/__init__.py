"""Tool calls in the text of an answer, each model's way of writing them a parser."""
