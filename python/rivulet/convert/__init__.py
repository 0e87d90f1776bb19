"""PyTorch networks as jobs of the built-in trainer.

`python -m rivulet.convert mine.py:make_net --input 3,32,32 --out DIR` writes a job, and
`rivulet.convert.load(net, file)` puts a model that was trained back into the network; `save` goes the other way.
See docs/convert.md.

`__main__` is the command, `tracer` follows a network by torch.fx, `trace` makes layers of its operations, `layers` is
the table of what has a counterpart, `patterns` knows what takes several operations, `stacks` the modules that become
several layers, `weights` the functions that are given weights, `job` writes the job document, `names` is the table of
names and what goes through it. `tracer`, `trace`, `layers`, `patterns`, `stacks` and `weights` need PyTorch.
"""

from .names import load, save

__all__ = ["load", "save"]
