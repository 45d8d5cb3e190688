// A number in a file, which checks tokens.
//
// Each access shows a token. From then on the store refuses reads and writes with a smaller token, so an update can be
// lost only if two grants have tokens in the wrong order. A user who always shows 0 is not checked.
#pragma once

#include <cstdint>
#include <string>

namespace holdfast::chaos {

/// Thread safety: objects of one path may be used by many threads and processes. A process may be killed at any time.
class store {
public:
    /// The file may be missing: that is 0. It begins with the number and the greatest token.
    explicit store(std::string path) : path_(std::move(path)) {}

    /// The number; -1 if the token is too small.
    std::int64_t open(std::uint64_t token) const;
    /// Writes `read` + 1, where `read` is what open() returned. False if the token is too small by now. Every write is
    /// a line in the file with ".log" behind its name: the number that it replaces, `read` and the token. If the two
    /// numbers differ, an update was lost.
    bool write(std::uint64_t token, std::int64_t read) const;

private:
    struct content {
        std::int64_t count = 0;
        std::uint64_t token = 0;
    };
    template <typename Operation>
    std::int64_t exclusively(Operation operation) const;

    std::string path_;
};

}  // namespace holdfast::chaos
