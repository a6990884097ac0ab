"""What a wheel holds besides modules: the scenarios and studies at the root of this folder.

All else is in `pyproject.toml`, which cannot say that a folder outside of a package goes into it.
"""

from pathlib import Path
from shutil import copytree

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithFiles(build_py):
    """Modules, and the files that `tidings.files.packaged` finds. An editable install needs no
    copies: it finds the folders themselves."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for folder in ("scenarios", "studies"):
                place = Path(self.build_lib, "tidings", "packaged", folder)
                copytree(folder, place, dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithFiles})
