"""Finds the CUDA libraries that the programs open at run time. Search order: the folders of
LD_LIBRARY_PATH, lib/ of the build, the Python packages that PyTorch installs (nvidia/*/lib and
torch/lib beside them in every folder of sys.path), the system's loader, and the toolkits in
/usr/local."""
import ctypes.util
import os
import pathlib
import re
import subprocess
import sys

PARTS = {"libcublas": "cuBLAS", "libcublasLt": "cuBLASLt", "libcudnn": "cuDNN", "libnccl": "NCCL"}
NEEDED = ("libcublas", "libcublasLt")


def package_folders():
    """lib folders of NVIDIA's Python packages."""
    found = []
    for place in map(pathlib.Path, sys.path):
        try:
            found += sorted(place.glob("nvidia/*/lib")) + sorted(place.glob("torch/lib"))
        except OSError:  # a folder that may not be read
            continue
    return [folder for folder in dict.fromkeys(found) if folder.is_dir()]


def sonames(cuda):
    """The names that a build with this major version of CUDA opens."""
    return {"libcublas": f"libcublas.so.{cuda}", "libcublasLt": f"libcublasLt.so.{cuda}",
            "libcudnn": "libcudnn.so.9", "libnccl": "libnccl.so.2"}


def system_has(soname):
    name = re.sub(r"^lib|\.so\..*", "", soname)
    return ctypes.util.find_library(name) == soname


class Libraries:
    """`found`: library -> where it is, or "" where there is none; `path`: LD_LIBRARY_PATH for the
    programs. Only folders of NVIDIA's libraries are added: a folder with another C++ library would
    also change what Python loads."""

    def __init__(self, build, cuda):
        given = [pathlib.Path(p) for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p]
        toolkits = [pathlib.Path(f"/usr/local/cuda{version}/lib64") for version in ("", f"-{cuda}")]
        self.found, added = {}, []
        for library, soname in sonames(cuda).items():
            self.found[library] = ""
            for folder in [*given, build / "lib", *package_folders(), None, *toolkits]:
                if folder is None:
                    if system_has(soname):
                        self.found[library] = f"{soname} (system)"
                        break
                elif (folder / soname).exists():
                    self.found[library] = str(folder / soname)
                    if folder not in given and folder != build / "lib":
                        added.append(folder)
                    break
        driver = pathlib.Path("/usr/local/nvidia/lib64")  # of some containers
        if (driver / "libcuda.so.1").exists() and not system_has("libcuda.so.1"):
            added.append(driver)
        self.path = ":".join(str(p) for p in dict.fromkeys([*given, *added]))

    def missing(self):
        return [name for name in NEEDED if not self.found[name]]


def cuda_of(program, env=None):
    """The major version of CUDA that the build was made with, from --build-info."""
    done = subprocess.run([str(program), "--build-info"], capture_output=True, text=True, env=env)
    version = re.search(r"CUDA\D*(\d+)\.\d+", done.stdout)
    return int(version[1]) if version else 0
