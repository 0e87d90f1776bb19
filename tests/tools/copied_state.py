"""A coordinator on a copy of a test's state directory: its configuration with other paths (CONF, CONF_STATE, CONF_SOCK of the environment)."""
import os, subprocess, time


def launch(rivuletd, state, work, seconds):
    """Starts it. (process, socket, log); returns when the socket is there, the process has ended, or the time is over."""
    conf, sock, log = (os.path.join(work, n) for n in ("d.conf", "d.sock", "d.log"))
    with open(conf, "w") as f:
        f.write(open(os.environ["CONF"]).read().replace(os.environ["CONF_STATE"], state).replace(os.environ["CONF_SOCK"], sock))
    with open(log, "wb") as err:
        p = subprocess.Popen([rivuletd, "--config", conf], stderr=err)
    end = time.monotonic() + seconds
    while time.monotonic() < end and p.poll() is None and not os.path.exists(sock):
        time.sleep(0.02)
    return p, sock, log
