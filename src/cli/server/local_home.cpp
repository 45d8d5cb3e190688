#include "cli/server/local_home.hpp"

#include "cli/terminal/abstract_address.hpp"
#include "redis/url/url_text.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace holdfast::cli {
namespace {

constexpr mode_t others = S_IRWXG | S_IRWXO;
constexpr const char* advice =
    "set HOLDFAST_HOME to a directory of your own that can be written to, or name a server with --url";

std::string default_directory() {
    const std::string chosen = environment("HOLDFAST_HOME");
    if (!chosen.empty()) return std::filesystem::absolute(chosen).lexically_normal().string();
    return fmt::format("/tmp/holdfast-{}", ::geteuid());
}

void make_private(const std::string& directory) {
    if (::mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
        throw trouble(fmt::format("cannot make {}: {}; {}", directory, std::strerror(errno), advice));
    }
    const unique_fd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!opened) {
        const bool link = errno == ELOOP || errno == ENOTDIR;
        throw trouble(fmt::format("{} cannot be used: {}; {}", directory,
                                  link ? "it is not a directory, or a link to one" : std::strerror(errno), advice));
    }
    struct stat facts {};
    if (::fstat(opened.get(), &facts) != 0) throw_errno(directory);
    if (facts.st_uid != ::geteuid()) {
        throw trouble(fmt::format("{} belongs to another user; {}", directory, advice));
    }
    if ((facts.st_mode & others) != 0) {
        throw trouble(fmt::format("{} is open to other users; close it with chmod 700, or {}", directory, advice));
    }
}

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        throw trouble(fmt::format("{} is too long for a socket: at most {} bytes; set a shorter HOLDFAST_HOME", path,
                                  sizeof address.sun_path - 1));
    }
    path.copy(address.sun_path, path.size());
    return address;
}

unique_fd make_socket() {
    unique_fd made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!made) throw_errno("socket");
    return made;
}

// Without a descriptor, errno says why.
unique_fd connected_to(const std::string& path) {
    const sockaddr_un address = address_of(path);
    unique_fd link = make_socket();
    const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(link.get(), generic, sizeof address) == 0) return link;
    const int why = errno;
    link.reset();
    errno = why;
    return link;
}

// Of one user and one directory.
abstract_address mark_of(const std::string& directory) {
    return abstract_address(fmt::format("holdfast:{}:{}", ::geteuid(), directory));
}

}  // namespace

local_home local_home::open() {
    local_home home(default_directory());
    address_of(home.socket());
    make_private(home.directory_);
    // Its mark is named after it: a directory must not have two names.
    home.directory_ = std::filesystem::canonical(home.directory_).string();
    address_of(home.socket());
    return home;
}

std::string local_home::url() const {
    return "unix://" + redis::percent_encode(socket(), "/:@+,=");
}

unique_fd local_home::take_turn() const {
    const std::string path = directory_ + "/turn.lock";
    unique_fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
    if (!file) {
        const int why = errno;
        throw trouble(fmt::format("cannot write to {}: {}; {}", directory_, std::strerror(why), advice));
    }
    while (::flock(file.get(), LOCK_EX) != 0) {
        if (errno != EINTR) throw_errno(path);
    }
    return file;
}

bool local_home::is_answered() const {
    // EAGAIN: the queue of connections is full, so there is somebody to whom they queue.
    return connected_to(socket()) || errno == EAGAIN;
}

unique_fd local_home::take_mark() const {
    const abstract_address address = mark_of(directory_);
    unique_fd mark = make_socket();
    if (::bind(mark.get(), address.generic(), address.size) == 0) return mark;
    if (errno != EADDRINUSE) throw_errno("the mark of the local server");
    return {};
}

bool local_home::living_server::sees_our_files() const {
    std::error_code unknown;
    const auto its = std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/ns/mnt", unknown);
    return pid > 0 && !unknown && its == std::filesystem::read_symlink("/proc/self/ns/mnt", unknown);
}

std::optional<local_home::living_server> local_home::find_living_server() const {
    const abstract_address address = mark_of(directory_);
    const unique_fd link = make_socket();
    if (::connect(link.get(), address.generic(), address.size) != 0) {
        if (errno != EAGAIN) return std::nullopt;
        return living_server{0, ::geteuid()};  // so many have asked that it is not told any more
    }
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(link.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) throw_errno("SO_PEERCRED");
    return living_server{peer.pid, peer.uid};
}

void local_home::send_line(std::string_view command) const {
    const unique_fd link = connected_to(socket());
    const std::string line = std::string(command) + "\r\n";
    if (!link || ::send(link.get(), line.data(), line.size(), MSG_NOSIGNAL) < 0) throw_errno(socket());
}

}  // namespace holdfast::cli
