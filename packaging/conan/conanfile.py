"""The Conan recipe: it builds the tree that it is a part of.

    conan create packaging/conan                                     Boost and OpenSSL from ConanCenter
    conan create packaging/conan -pr:a packaging/conan/debian12      those of Debian 12, by apt-get
"""
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load


class Holdfast(ConanFile):
    name = "holdfast"
    description = "Distributed locks on Redis: first come, first served, with fencing tokens"
    license = "MIT"
    topics = ("redis", "lock", "mutex", "distributed-systems")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False]}
    default_options = {"shared": False, "fPIC": True, "boost/*:header_only": True}
    implements = ["auto_shared_fpic"]

    @property
    def _tree(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self._tree, "CMakeLists.txt"))
        self.version = re.search(r"project\(holdfast VERSION ([0-9.]+)", text)[1]

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*", "packaging/*"):
            copy(self, pattern, self._tree, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        self.requires("boost/[>=1.81 <2]", transitive_headers=True)
        self.requires("openssl/[>=3.0 <4]")

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["HOLDFAST_LIBRARY"] = "shared" if self.options.shared else "static"
        for part in ("CLI", "TESTS", "EXAMPLES", "WERROR"):
            toolchain.cache_variables[f"HOLDFAST_{part}"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        # The project's own CMake package is the one to find; it asks for Boost and OpenSSL itself.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append(os.path.join("lib", "cmake", "holdfast"))
        self.cpp_info.set_property("pkg_config_name", "holdfast")
        self.cpp_info.libs = ["holdfast"]
        self.cpp_info.system_libs = ["pthread"]
