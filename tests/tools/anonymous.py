"""anonymous.py PID FILE: keeps in FILE the most anonymous memory, in KiB, that a process had; ends with the process, or by SIGTERM."""
import os
import sys
import time

status, out = "/proc/%s/status" % sys.argv[1], sys.argv[2]
most = 0
while True:
    try:
        with open(status) as f:
            now = int(f.read().split("RssAnon:")[1].split()[0])
    except (OSError, IndexError):
        break
    if now > most:
        most = now
        with open(out + ".new", "w") as f:
            f.write("%d\n" % most)
        os.rename(out + ".new", out)
    time.sleep(0.001)
