"""The same instructions from every version of nvdisasm that is supported."""

import shutil
import subprocess
import sys
import zipfile

import pytest

from toolkit.machine_code import disassemble as module
from toolkit.machine_code.decode import decode
from toolkit.machine_code.disassemble import Disassembler, disassemble
from validation.corpus.inventory import ARCHITECTURES, sources

# Packages that hold a version: wheels of nvdisasm alone begin with CUDA 13.2.
PACKAGES = {
    "12.8": "triton==3.5.1",
    "13.1": "triton==3.8.0",
    "13.2": "nvidia-cuda-nvdisasm==13.2.51",
    "13.4": "nvidia-cuda-nvdisasm==13.4.92",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("nvdisasm")


def program(version, folder):
    """Path of nvdisasm in this version, downloaded once."""
    path = folder / version / "nvdisasm"
    if not path.parent.exists():
        options = ["--no-deps", "--only-binary", ":all:", "--dest", str(path.parent)]
        command = [sys.executable, "-m", "pip", "download", *options, PACKAGES[version]]
        subprocess.run(command, capture_output=True, check=False)
        for wheel in path.parent.glob("*.whl"):
            with zipfile.ZipFile(wheel) as files:
                (name,) = (name for name in files.namelist() if name.endswith("/bin/nvdisasm"))
                with files.open(name) as source, path.open("wb") as target:
                    shutil.copyfileobj(source, target)
            path.chmod(0o755)
            wheel.unlink()
    if not path.exists():
        pytest.skip(f"{PACKAGES[version]} cannot be downloaded")
    return Disassembler(path=str(path), version=version)


@pytest.mark.exhaustive
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("version", PACKAGES)
def test_corpus_and_ladder_are_the_same_instructions(version, arch, folder):
    older = program(version, folder)
    for source in sources():
        if arch in source.architectures():
            image = source.image(arch)
            printed = module._run(older, image).decode()
            assert f"nvdisasm V{version}." in printed
            assert instructions(printed) == instructions(disassemble(image)), source.label


def instructions(printed):
    return [one for function in decode(printed) for one in function.instructions]
