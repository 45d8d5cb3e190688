#include "store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace holdfast::chaos {
namespace {

// One call writes all of it: a process that is killed leaves no half of it behind.
void write_at_once(const std::string& path, int flags, const std::string& text) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
    const bool complete = file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::close(file);
    if (!complete) throw std::runtime_error("the store is not writable");
}

}  // namespace

template <typename Operation>
std::int64_t store::exclusively(Operation operation) const {
    const int guard = ::open((path_ + ".guard").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (guard < 0 || ::flock(guard, LOCK_EX) != 0) throw std::runtime_error("the store cannot be guarded");
    content now;
    std::ifstream(path_) >> now.count >> now.token;
    const std::int64_t answer = operation(now);
    // Of one length, so that it replaces what was there.
    std::array<char, 64> line{};
    std::snprintf(line.data(), line.size(), "%020lld %020llu\n", static_cast<long long>(now.count),
                  static_cast<unsigned long long>(now.token));
    write_at_once(path_, 0, line.data());
    ::close(guard);
    return answer;
}

std::int64_t store::open(std::uint64_t token) const {
    return exclusively([&](content& now) -> std::int64_t {
        if (token < now.token) return -1;
        now.token = token;
        return now.count;
    });
}

bool store::write(std::uint64_t token, std::int64_t read) const {
    return exclusively([&](content& now) -> std::int64_t {
               if (token != now.token) return 0;
               write_at_once(
                   path_ + ".log", O_APPEND,
                   std::to_string(now.count) + ' ' + std::to_string(read) + ' ' + std::to_string(token) + '\n');
               now.count = read + 1;
               return 1;
           }) == 1;
}

}  // namespace holdfast::chaos
