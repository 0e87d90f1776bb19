#!/usr/bin/env python3
"""What tensorboard's own classes make of the Events in tests/unit/test_tfevents.c, as C bytes. Needs tensorboard."""
import struct

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c


def record(event):
    data = event.SerializeToString()
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", masked_crc32c(head)) + data + struct.pack("<I", masked_crc32c(data))


value = summary_pb2.Summary.Value
summary = summary_pb2.Summary(
    value=[value(tag="loss/train", simple_value=0.75), value(tag="metrics/perplexity", simple_value=12.5)]
)
text = record(event_pb2.Event(wall_time=1700000000, file_version="brain.Event:2"))
text += record(event_pb2.Event(wall_time=1700000001.25, step=300, summary=summary))
print(", ".join(f"0x{b:02x}" for b in text))
