"""Whom a connection to a coordinator believes: certificates of a home, or the CA that an access token names.

Certificates and host names are always checked. The one request that is not is ``GET /v1/ca`` for a token: nothing
secret goes with it, and of the answer only the certificate whose SHA-256 stands in the token is believed.
"""
import hashlib
import http.client
import json
import os
import re
import ssl
import stat
import time
import warnings
from typing import List, Optional, Tuple

from . import Error
from ._text import utf8

PORT = 7443
PEM_MAX = 65536
TOKEN_MAX = 1024
_TOKEN = re.compile(r"rvt1-[0-9a-f]{16}-[0-9a-f]{64}-([0-9a-f]{64})")
_ADDRESS = re.compile(r"(?:https://)?(\[[0-9A-Za-z:.%]+\]|[0-9A-Za-z._-]{1,255})(?::([0-9]{1,5}))?/?")
# ssl.VERIFY_X509_PARTIAL_CHAIN since Python 3.10: a CA that we hold is believed also where another CA certified it.
_PARTIAL_CHAIN = 0x80000


def address(text: str) -> Tuple[str, int]:
    """Host and port of an address as people write it: "host", "host:7443", "https://host:7443"."""
    match = _ADDRESS.fullmatch(text)
    port = int(match.group(2) or PORT) if match else 0
    if not match or not 0 < port < 65536:
        raise Error('"%.100s" is no address of a coordinator; write https://HOST:PORT' % text, "invalid")
    return match.group(1).strip("[]"), port


def read(path: str, limit: int) -> str:
    """A small text file, at most ``limit`` bytes."""
    try:
        with open(path, "rb") as f:
            data = f.read(limit + 1)
    except OSError as e:
        raise Error("%s: %s" % (path, e.strerror), "not-found" if isinstance(e, FileNotFoundError) else "io") from e
    if len(data) > limit:
        raise Error("%s is larger than %d bytes" % (path, limit), "limit")
    try:
        return utf8(data, path).decode("utf-8", "replace")
    except ValueError as e:
        raise Error(str(e), "invalid") from None


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= _PARTIAL_CHAIN
    return context


def home_default() -> str:
    """Where ``rivulet`` looks for an identity when no ``--home`` is given."""
    if os.environ.get("RIVULET_HOME"):
        return os.environ["RIVULET_HOME"]
    if os.geteuid() == 0:
        return "/var/lib/rivulet-device"
    return os.path.join(os.path.expanduser("~"), ".rivulet")


def of_home(home: str) -> Tuple[ssl.SSLContext, List[str]]:
    """The context for a home that has joined, and the addresses it knows. Warns of a certificate that wants renewal."""
    try:
        device = json.loads(read(os.path.join(home, "device.json"), PEM_MAX))
        urls = [str(url) for url in device["coordinators"]]
        renew_after = float(device.get("renew_after", 0))
    except (ValueError, KeyError, TypeError) as e:
        raise Error("%s/device.json is damaged: %s" % (home, e), "invalid") from e
    context = _context()
    try:
        context.load_verify_locations(cadata=read(os.path.join(home, "ca.pem"), PEM_MAX))
        context.load_cert_chain(os.path.join(home, "cert.pem"), os.path.join(home, "key.pem"))
    except (OSError, ValueError) as e:
        raise Error("key and certificates in %s cannot be used: %s" % (home, e), "invalid") from e
    if 0 < renew_after < time.time():
        warnings.warn(
            "the certificate in %s wants renewal, which Python does not do: run `rivulet status --url %s --home %s`"
            % (home, urls[0] if urls else "URL", home),
            stacklevel=4,
        )
    return context, urls


def token(path: str) -> Tuple[str, str]:
    """An access token from its file, and the SHA-256, in hex, of the CA that it names."""
    text = read(path, TOKEN_MAX).strip()
    mode = os.stat(path).st_mode
    if stat.S_ISREG(mode) and mode & stat.S_IRWXO:
        said = "%s: everybody on this machine can use this token: chmod o= it, and make a new one"
        warnings.warn(said % path, stacklevel=4)
    match = _TOKEN.fullmatch(text)
    if not match:
        raise Error("%s holds no token" % path, "invalid")
    return text, match.group(1)


def of_ca_file(path: str) -> ssl.SSLContext:
    """The context that believes the CAs in a PEM file."""
    context = _context()
    try:
        context.load_verify_locations(cadata=read(path, PEM_MAX))
    except (ValueError, ssl.SSLError) as e:
        raise Error("%s holds no CA: %s" % (path, e), "invalid") from e
    return context


def of_token(where: Tuple[str, int], fingerprint: str, timeout: float) -> ssl.SSLContext:
    """The context that believes the CA with this SHA-256 and no other, fetched from the coordinator itself."""
    pem = _fetch_ca(where, timeout)
    for block in re.findall("-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----", pem):
        der = _der(block)
        if der and hashlib.sha256(der).hexdigest() == fingerprint:
            context = _context()
            context.load_verify_locations(cadata=der)
            return context
    raise Error(
        "the CA of https://%s:%d is not the one of this token: wrong coordinator, or someone in between" % where,
        "denied"
    )


def _der(block: str) -> Optional[bytes]:
    try:
        return ssl.PEM_cert_to_DER_cert(block)
    except ValueError:
        return None


def _fetch_ca(where: Tuple[str, int], timeout: float) -> str:
    unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unverified.check_hostname = False
    unverified.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection(where[0], where[1], timeout=timeout, context=unverified)
    try:
        connection.request("GET", "/v1/ca")
        answer = connection.getresponse()
        body = answer.read(PEM_MAX)
    except (OSError, http.client.HTTPException) as e:
        raise Error("cannot reach a coordinator at https://%s:%d: %s" % (where + (e,)), "unreachable") from e
    finally:
        connection.close()
    if answer.status != 200:
        raise Error("https://%s:%d/v1/ca: status %d" % (where + (answer.status,)), "unreachable")
    return body.decode("ascii", "replace")
