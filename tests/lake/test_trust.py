"""The key store that the bundled Java gets: read back by Java's own tool, where there is one."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from engine.lake.trust import PASSWORD, java_options, key_store, machine_bundle, read_certificates

BUNDLE = machine_bundle({})


@pytest.fixture
def authorities():
    if BUNDLE is None:
        pytest.skip("this machine has no list of authorities")
    return read_certificates(BUNDLE.read_text(encoding="utf-8"))


def test_certificates_are_read_once_and_text_between_is_ignored(authorities):
    pem = ssl.DER_cert_to_PEM_cert(authorities[0])
    text = f"# an authority\n{pem}\n# the same again\n{pem}\nand a broken one\n-----BEGIN CERTIFICATE-----\n"
    assert read_certificates(text) == (authorities[0],)
    assert read_certificates("nothing") == ()


def test_java_reads_the_store(authorities, tmp_path):
    keytool = shutil.which("keytool")
    if keytool is None:
        pytest.skip("keytool is not installed; the bundled Java has none")
    store = tmp_path / "store.jks"
    store.write_bytes(key_store(authorities[:3]))
    command = [keytool, "-list", "-keystore", str(store), "-storetype", "jks", "-storepass", PASSWORD]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert listed.returncode == 0, listed.stdout
    assert "3 entries" in listed.stdout
    damaged = bytearray(store.read_bytes())
    damaged[-30] ^= 1
    store.write_bytes(damaged)
    assert subprocess.run(command, capture_output=True, text=True, check=False).returncode != 0


def test_a_named_list_is_preferred_and_a_missing_one_changes_nothing(authorities, tmp_path):
    mine = tmp_path / "mine.pem"
    mine.write_text(ssl.DER_cert_to_PEM_cert(authorities[0]))
    assert machine_bundle({"SSL_CERT_FILE": str(mine)}) == mine
    options = java_options(tmp_path, {"SSL_CERT_FILE": str(mine)})
    assert options[0] == f"-Djavax.net.ssl.trustStore={tmp_path / 'authorities.jks'}"
    assert Path(tmp_path / "authorities.jks").read_bytes() == key_store(authorities[:1])
    assert java_options(tmp_path, {"SSL_CERT_FILE": str(tmp_path / "gone.pem")}) == ()
