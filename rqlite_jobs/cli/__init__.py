"""The command `rqj`: a noun a module, each loaded only when it is used. It starts in `main`."""
