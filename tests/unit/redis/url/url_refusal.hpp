// Shared by the tests of URLs.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <holdfast/errors.hpp>
#include <string>
#include <string_view>

#include "redis/url/server_url.hpp"

namespace holdfast::redis {

/// The message that refuses a URL; empty if it is accepted.
inline std::string refusal(std::string_view url) {
    try {
        parse_url(url);
    } catch (const error& problem) {
        EXPECT_EQ(problem.condition(), errc::bad_url);
        return problem.what();
    }
    return {};
}

/// A file with the given content, removed with the object.
class temporary_file {
public:
    explicit temporary_file(std::string_view content)
        : path_(::testing::TempDir() + "holdfast_url_test." + std::to_string(getpid())) {
        std::ofstream(path_, std::ios::binary) << content;
    }
    temporary_file(const temporary_file&) = delete;
    temporary_file& operator=(const temporary_file&) = delete;
    ~temporary_file() { std::filesystem::remove(path_); }

    const std::string& path() const { return path_; }

private:
    std::string path_;
};

}  // namespace holdfast::redis
