"""Whom the bundled Java trusts on the network: the same authorities as the rest of the machine.

A Java that came by pip knows only the public authorities that were packed with it. Companies add their own to
the machine's list, which is a PEM file; Java reads key stores. This writes one from the other.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import struct
from collections.abc import Mapping
from pathlib import Path

#: where Linux distributions keep the list
BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
#: a key store wants a password also when it holds no secret: this one only seals it against damage
PASSWORD = "changeit"  # noqa: S105  not a secret, and Java's own default

_MAGIC, _VERSION, _TRUSTED = 0xFEEDFEED, 2, 2
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def java_options(folder: Path, env: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Options for a Java that shall trust what the machine trusts; none where the machine has no list."""
    bundle = machine_bundle(env)
    if bundle is None:
        return ()
    certificates = read_certificates(bundle.read_text(encoding="utf-8", errors="replace"))
    if not certificates:
        return ()
    store = folder / "authorities.jks"
    store.write_bytes(key_store(certificates))
    return (
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=jks",
        f"-Djavax.net.ssl.trustStorePassword={PASSWORD}",
    )


def machine_bundle(env: Mapping[str, str]) -> Path | None:
    """The list that OpenSSL is told to use, else the distribution's."""
    named = env.get("SSL_CERT_FILE")
    candidates = [named] if named else [ssl.get_default_verify_paths().cafile, *BUNDLES]
    return next((Path(file) for file in candidates if file and Path(file).is_file()), None)


def read_certificates(pem: str) -> tuple[bytes, ...]:
    """The certificates of a PEM file, each once, in its order; text between them is commentary."""
    found: dict[bytes, None] = {}
    for part in pem.split(_BEGIN)[1:]:
        body, end, _ = part.partition(_END)
        if end:
            found[ssl.PEM_cert_to_DER_cert(_BEGIN + body + _END)] = None
    return tuple(found)


def key_store(certificates: tuple[bytes, ...]) -> bytes:
    """A Java key store of trusted certificates, in the format that every Java reads."""
    content = struct.pack(">III", _MAGIC, _VERSION, len(certificates))
    for number, certificate in enumerate(certificates):
        content += struct.pack(">I", _TRUSTED) + _text(f"authority-{number}") + struct.pack(">Q", 0)
        content += _text("X.509") + struct.pack(">I", len(certificate)) + certificate
    # the seal: a digest over the password, a phrase that the format prescribes, and the content
    sealed = PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + content
    return content + hashlib.sha1(sealed, usedforsecurity=False).digest()


def _text(value: str) -> bytes:
    encoded = value.encode("utf-8")
    return struct.pack(">H", len(encoded)) + encoded
