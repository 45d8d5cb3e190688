#include "cli/server/local_server.hpp"

#include "base/boot_clock.hpp"
#include "cli/inspect/locks/lock_look.hpp"
#include "cli/inspect/servers/ask.hpp"
#include "cli/server/daemon.hpp"
#include "cli/terminal/text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <thread>
#include <utility>

namespace holdfast::cli {
namespace {

using namespace std::chrono_literals;

// Far more than it takes; a machine that needs longer has other troubles.
constexpr auto longest_start = 20s;
constexpr auto longest_stop = 20s;
// How long one that answers no more may take to be gone.
constexpr auto longest_end = 3s;
constexpr auto look_again = 5ms;

std::vector<std::string> server_command(const local_home& home) {
    std::vector<std::string> words{"redis-server"};
    const std::initializer_list<std::pair<const char*, std::string>> settings{
        {"--port", "0"},
        {"--unixsocket", home.socket()},
        {"--unixsocketperm", "600"},
        {"--daemonize", "no"},
        {"--save", ""},
        {"--appendonly", "no"},
        {"--maxmemory-policy", "noeviction"},
        {"--dir", home.directory()},
        {"--pidfile", home.pid_file()},
        {"--logfile", home.log()},
    };
    for (const auto& [name, value] : settings) words.insert(words.end(), {name, value});
    return words;
}

std::string last_line(const std::string& path) {
    std::ifstream file(path);
    std::string last;
    for (std::string line; std::getline(file, line);) {
        if (!line.empty()) last = line;
    }
    return last;
}

bool runs(pid_t process) {
    return ::kill(process, 0) == 0 || errno == EPERM;
}

[[noreturn]] void throw_not_started(int error) {
    if (error == ENOENT) {
        throw trouble(
            "redis-server is not installed, and no server was named: install the package redis-server "
            "(apt-get install redis-server), or give the URL of a server with --url or HOLDFAST_URL");
    }
    throw trouble(fmt::format("cannot run redis-server: {}", std::strerror(error)));
}

void wait_until_answered(const local_home& home, pid_t server) {
    const instant give_up = boot_now() + longest_start;
    while (!home.is_answered()) {
        if (!runs(server) || boot_now() >= give_up) {
            throw trouble(
                fmt::format("redis-server did not come up; {} ends with: {}", home.log(), last_line(home.log())));
        }
        std::this_thread::sleep_for(look_again);
    }
    // On a machine that is short of time the first answer may take longer than a request may.
    for (;;) {
        try {
            return client(home.url()).ping();
        } catch (const error&) {
            if (!runs(server) || boot_now() >= give_up) throw;
        }
    }
}

[[noreturn]] void throw_out_of_reach(const local_home& home) {
    const auto found = home.find_living_server();
    if (found && found->user != ::geteuid()) {
        throw trouble(
            fmt::format("user {} has taken the name of the local server of {}; set HOLDFAST_HOME to another "
                        "directory, or name a server with --url",
                        found->user, home.directory()));
    }
    if (found && found->pid > 0 && !found->sees_our_files()) {
        throw trouble(fmt::format(
            "the local server of {} runs (pid {}) where other files are seen, in a container or a service with "
            "PrivateTmp; set HOLDFAST_HOME to a directory that both see, or to one of your own, or name a server with "
            "--url",
            home.directory(), found->pid));
    }
    throw trouble(
        fmt::format("the local server still runs ({}), but its socket {} was removed, and a second server would know "
                    "nothing of its "
                    "locks; wait until what runs under them has ended, then say holdfast server stop --force",
                    found && found->pid > 0 ? fmt::format("pid {}", found->pid) : "pid not known", home.socket()));
}

// Empty: a server answers by now. One that ends just now is waited for.
unique_fd take_mark(const local_home& home) {
    const instant give_up = boot_now() + longest_end;
    for (;;) {
        if (home.is_answered()) return {};
        if (unique_fd mark = home.take_mark()) return mark;
        if (boot_now() >= give_up) throw_out_of_reach(home);
        std::this_thread::sleep_for(look_again);
    }
}

std::vector<std::string> held_locks(const client& server) {
    std::vector<std::string> held;
    for (const lock_state& lock : find_locks(server, wire::default_prefix).locks) {
        if (!lock.is_free()) held.push_back(lock.where.keys.lock());
    }
    return held;
}

}  // namespace

found start_local_server(const local_home& home) {
    if (home.is_answered()) return found::running;
    const unique_fd turn = home.take_turn();
    const unique_fd mark = take_mark(home);
    if (!mark) return found::running;
    const daemon_start begun = start_daemon(server_command(home), home.directory(), mark.get());
    if (begun.error != 0) throw_not_started(begun.error);
    wait_until_answered(home, begun.pid);
    return found::started;
}

std::optional<local_status> ask_local_status(const local_home& home) {
    if (!home.is_answered()) return std::nullopt;
    const client server(home.url());
    const std::string info = ask(server, {"INFO", "server"}).text;
    const auto number = [&info](const char* field) {
        return whole_number(info_field(info, field).value_or("")).value_or(0);
    };
    local_status status;
    status.pid = number("process_id");
    status.version = info_field(info, "redis_version").value_or("");
    status.uptime = std::chrono::seconds(number("uptime_in_seconds"));
    status.held = held_locks(server);
    return status;
}

void stop_local_server(const local_home& home) {
    if (home.is_answered()) {
        home.send_line("SHUTDOWN NOSAVE");
    } else if (const auto living = home.find_living_server()) {
        if (living->user != ::geteuid() || !living->sees_our_files()) throw_out_of_reach(home);
        ::kill(living->pid, SIGTERM);
    }
    const instant give_up = boot_now() + longest_stop;
    while (home.is_answered() || home.has_living_server()) {
        if (boot_now() >= give_up) throw trouble("the local server does not end; see " + home.log());
        std::this_thread::sleep_for(look_again);
    }
}

}  // namespace holdfast::cli
