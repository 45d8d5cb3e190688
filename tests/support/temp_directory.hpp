// A temporary directory that lives as long as its object.
#pragma once

#include <filesystem>
#include <string_view>

namespace holdfast::testing {

/// Made by mkdtemp (mode 0700) under $TMPDIR, or under /tmp if that path is too long: a unix socket's path must fit in
/// 107 bytes. The destructor removes it with its contents.
class temp_directory {
public:
    explicit temp_directory(std::string_view prefix = "hf-");
    ~temp_directory();
    temp_directory(temp_directory&& other) noexcept;
    temp_directory& operator=(temp_directory&& other) noexcept;

    const std::filesystem::path& path() const noexcept { return path_; }

private:
    void remove() noexcept;

    std::filesystem::path path_;
};

}  // namespace holdfast::testing
