"""The engine as fronts reach it: in their own process, or through a socket."""
