"""The native libraries; everything else stands in pyproject.toml."""

from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

from toolkit import native


class BuildLibraries(build_ext):
    """Plain shared libraries, which ctypes loads: the same for every Python."""

    def get_ext_filename(self, fullname: str) -> str:
        return native.file_of(fullname)

    def build_extension(self, extension: Extension) -> None:
        if native.compiler() is None:  # all but the simulator works then, and says so
            self.warn(f"{extension.name} is not built: there is no C compiler")
        else:
            native.build(extension.name, Path(self.get_ext_fullpath(extension.name)))


setup(
    ext_modules=[
        Extension(name, sources=list(sources), optional=True)
        for name, (sources, _) in native.libraries().items()
    ],
    cmdclass={"build_ext": BuildLibraries},
)
