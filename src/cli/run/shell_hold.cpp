#include "cli/run/shell_hold.hpp"

#include "cli/terminal/abstract_address.hpp"
#include "cli/terminal/text.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <utility>

namespace holdfast::cli {
namespace {

constexpr timeval time_to_talk{2, 0};
constexpr timeval time_to_release{60, 0};
constexpr std::size_t most_of_a_line = 1024;

// The fields of /proc/PID/stat from the third on; the second may have blanks and parentheses in it. None: it has ended.
std::vector<std::string> facts_of(pid_t process) {
    std::ifstream file(fmt::format("/proc/{}/stat", process));
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t end = text.rfind(") ");
    if (end == text.npos) return {};
    std::istringstream rest(text.substr(end + 2));
    return {std::istream_iterator<std::string>(rest), {}};
}

// 0: nobody we can see.
pid_t parent_of(pid_t process) {
    const std::vector<std::string> facts = facts_of(process);
    return facts.size() < 2 ? 0 : static_cast<pid_t>(whole_number(facts[1]).value_or(0));
}

// Which process that is, for as long as the machine runs. A pid alone is not enough: containers that share a network,
// and so the names of abstract sockets, each count pids anew, and a pid is used again when its process has ended.
std::optional<std::string> identity_of(pid_t shell) {
    constexpr std::size_t start_time = 22 - 3;
    struct stat pid_namespace {};
    const std::vector<std::string> facts = facts_of(shell);
    if (facts.size() <= start_time || ::stat("/proc/self/ns/pid", &pid_namespace) != 0) return std::nullopt;
    return fmt::format("{}:{}:{}", pid_namespace.st_ino, shell, facts[start_time]);
}

std::optional<abstract_address> address_of(pid_t shell, const lock_location& where) {
    const std::hash<std::string> hash;
    const auto identity = identity_of(shell);
    if (!identity) return std::nullopt;
    return abstract_address(
        fmt::format("hf-lock:{}:{}:{:016x}{:016x}", ::geteuid(), *identity, hash(where.server), hash(where.key)));
}

unique_fd make_stream(int flags) {
    unique_fd made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
    if (!made) throw_errno("socket");
    return made;
}

void limit(const unique_fd& link, timeval time) {
    ::setsockopt(link.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    ::setsockopt(link.get(), SOL_SOCKET, SO_SNDTIMEO, &time_to_talk, sizeof time_to_talk);
}

bool is_of_this_user(const unique_fd& link) {
    ucred peer{};
    socklen_t size = sizeof peer;
    return ::getsockopt(link.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

// Without the end of the line. Empty: none came.
std::string read_line(const unique_fd& link) {
    std::string line;
    while (line.size() < most_of_a_line) {
        char next = 0;
        const ssize_t size = ::recv(link.get(), &next, 1, 0);
        if (size < 0 && errno == EINTR) continue;
        if (size != 1) return {};
        if (next == '\n') return line;
        line += next;
    }
    return {};
}

bool write_line(const unique_fd& link, std::string_view text) noexcept {
    try {
        const std::string line = std::string(text) + "\n";
        return ::send(link.get(), line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size());
    } catch (const std::bad_alloc&) {
        return false;
    }
}

}  // namespace

unique_fd socket_for_shell(pid_t shell, const lock_location& where) {
    const auto address = address_of(shell, where);
    if (!address) throw trouble(fmt::format("process {}, for which to hold the lock, cannot be seen in /proc", shell));
    unique_fd made = make_stream(SOCK_NONBLOCK);
    if (::bind(made.get(), address->generic(), address->size) != 0) {
        if (errno == EADDRINUSE) return {};
        throw_errno("the socket of the lock");
    }
    return made;
}

void asker::answer(const std::string& text) noexcept {
    write_line(link, text);
    link.reset();
}

std::optional<asker> next_asker(int listener) {
    unique_fd link(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (!link || !is_of_this_user(link)) return std::nullopt;
    limit(link, time_to_talk);
    std::string question = read_line(link);
    return asker{std::move(link), std::move(question)};
}

bool may_be_shell(pid_t process) {
    return process > 1 || (process == 1 && ::getsid(1) == ::getsid(0));
}

std::vector<pid_t> ancestors() {
    std::vector<pid_t> all;
    for (pid_t each = ::getppid(); may_be_shell(each) && all.size() < 64; each = parent_of(each)) all.push_back(each);
    return all;
}

std::optional<std::string> ask_holder(const std::vector<pid_t>& shells, const lock_location& where,
                                      std::string_view question) {
    for (const pid_t shell : shells) {
        const auto address = address_of(shell, where);
        if (!address) continue;
        const unique_fd link = make_stream(0);
        limit(link, time_to_release);
        if (::connect(link.get(), address->generic(), address->size) != 0 || !is_of_this_user(link)) continue;
        if (write_line(link, question)) return read_line(link);
    }
    return std::nullopt;
}

std::optional<held_lock> hold_of_shell_above(const lock_location& where) {
    const auto told = ask_holder(ancestors(), where, "tell");
    if (!told) return std::nullopt;
    const std::size_t blank = told->find(' ');
    const auto token = whole_number(std::string_view(*told).substr(0, blank));
    if (!token || blank == told->npos) return std::nullopt;
    return held_lock{where, static_cast<std::uint64_t>(*token), told->substr(blank + 1)};
}

}  // namespace holdfast::cli
