"""Where a Solution runs: a process of its own, that can be killed and is never believed.

`zygote` forks it from a process that has PyTorch loaded, `child` is what runs in it, `candidate`
is the parent's end. Inputs and outputs lie in memory both share (`arena`); what passes between
them are short numbered messages (`wire`), so an answer that comes late answers nothing else.
"""
