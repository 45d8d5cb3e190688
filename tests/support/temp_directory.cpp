#include "support/temp_directory.hpp"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::testing {
namespace {

// Leaves room for a file name within the 107 bytes of a unix socket's path.
constexpr std::size_t longest_directory = 80;

std::string base_directory(std::size_t name_length) {
    const char* configured = std::getenv("TMPDIR");
    if (configured == nullptr || *configured == '\0') return "/tmp";
    std::string base{configured};
    if (base.size() + 1 + name_length > longest_directory) return "/tmp";
    return base;
}

}  // namespace

temp_directory::temp_directory(std::string_view prefix) {
    const std::string name = std::string{prefix} + "XXXXXX";
    std::string pattern = base_directory(name.size()) + "/" + name;
    if (::mkdtemp(pattern.data()) == nullptr) {
        throw std::system_error{errno, std::generic_category(), "mkdtemp " + pattern};
    }
    path_ = pattern;
}

temp_directory::~temp_directory() {
    remove();
}

temp_directory::temp_directory(temp_directory&& other) noexcept : path_{std::exchange(other.path_, {})} {}

temp_directory& temp_directory::operator=(temp_directory&& other) noexcept {
    if (this != &other) {
        remove();
        path_ = std::exchange(other.path_, {});
    }
    return *this;
}

void temp_directory::remove() noexcept {
    if (path_.empty()) return;
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
    path_.clear();
}

}  // namespace holdfast::testing
