"""PyTorch networks as jobs of the built-in trainer.

`python -m rivulet.convert mine.py:make_net --input 3,32,32 --out DIR`, see docs/convert.md. `__main__` is the command,
`trace` finds a network's operations by torch.fx, `layers` is the table of what has a counterpart, `patterns` knows what
takes several operations, `job` writes the job document. PyTorch is needed by `trace`, `layers` and `patterns`.
"""
