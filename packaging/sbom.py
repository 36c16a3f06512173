#!/usr/bin/env python3
"""Writes the software bill of materials of a release as CycloneDX 1.5 JSON.

    sbom.py VERSION OUTPUT FILE...

It lists the files with their SHA-256, the Debian packages of the shared libraries that the ELF
files in the .deb packages load, and the libraries that are compiled into them. SOURCE_DATE_EPOCH is
its time; the same files give the same bytes."""
import datetime
import hashlib
import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import uuid

NAMESPACE = uuid.UUID("6f2bd1a4-6a0e-5c37-9d5a-1d7f0d8f3c55")


# Debian packages of headers that are compiled in.
HEADERS = ("libboost1.74-dev", "nlohmann-json3-dev")


def output(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def needed(package):
    """Sonames that the ELF files of a .deb load."""
    names = set()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.is_symlink() or not path.is_file():
                continue
            with path.open("rb") as file:
                if file.read(4) != b"\x7fELF":
                    continue
            names.update(re.findall(r"NEEDED\s+(\S+)", output("objdump", "-p", str(path))))
    return names


def system_packages(sonames):
    """Name and version of the Debian packages that have these libraries."""
    cache = {line.split()[0]: line.split("=> ")[1] for line in
             output("/sbin/ldconfig", "-p").splitlines() if "x86-64" in line}
    packages = {}
    for soname in sonames:
        path = cache.get(soname)
        if not path:  # a library of nmt
            continue
        for candidate in (path, os.path.realpath(path), "/usr" + path):
            found = subprocess.run(["dpkg-query", "-S", candidate], capture_output=True, text=True)
            if found.returncode == 0:
                name = found.stdout.split(":")[0]
                packages[name] = output("dpkg-query", "-W", "-f", "${Version}", name)
                break
    return packages


def main():
    version, written, files = sys.argv[1], sys.argv[2], sorted(map(pathlib.Path, sys.argv[3:]))
    time = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]),
                                           datetime.timezone.utc)
    digests = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    sonames = set().union(*(needed(file) for file in files if file.suffix == ".deb"))
    packages = system_packages(sorted(sonames))
    for name in HEADERS:
        packages[name] = output("dpkg-query", "-W", "-f", "${Version}", name)
    root = {"type": "application", "bom-ref": "nmt", "name": "nmt", "version": version,
            "licenses": [{"license": {"id": "MIT"}}]}
    libraries = [{"type": "library", "bom-ref": f"deb:{name}", "name": name, "version": number,
                  "purl": f"pkg:deb/debian/{name}@{number}?arch=amd64&distro=bookworm"}
                 for name, number in sorted(packages.items())]
    nanobind = importlib.metadata.version("nanobind")
    libraries.append({"type": "library", "bom-ref": "pypi:nanobind", "name": "nanobind",
                      "version": nanobind, "purl": f"pkg:pypi/nanobind@{nanobind}"})
    artifacts = [{"type": "file", "bom-ref": f"file:{name}", "name": name,
                  "hashes": [{"alg": "SHA-256", "content": digest}]}
                 for name, digest in digests.items()]
    bom = {"bomFormat": "CycloneDX", "specVersion": "1.5",
           "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, json.dumps(digests))}", "version": 1,
           "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": root},
           "components": artifacts + libraries,
           "dependencies": [{"ref": "nmt", "dependsOn": [each["bom-ref"] for each in libraries]}]}
    pathlib.Path(written).write_text(json.dumps(bom, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
