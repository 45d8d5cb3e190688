#include "cli/local_server.hpp"

#include "base/boot_clock.hpp"
#include "cli/ask.hpp"
#include "cli/daemon.hpp"
#include "cli/exit_code.hpp"
#include "cli/lock_search.hpp"
#include "cli/system.hpp"
#include "cli/text.hpp"

#include <fmt/format.h>

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
    client(home.url()).ping();
}

std::vector<std::string> held_locks(const client& server) {
    std::vector<std::string> held;
    for (const lock_state& lock : find_locks(server, "hf:").locks) {
        if (!lock.is_free()) held.push_back(lock.where.keys.lock());
    }
    return held;
}

}  // namespace

found start_local_server(const local_home& home) {
    if (home.is_answered()) return found::running;
    const unique_fd turn = home.take_turn();
    if (home.is_answered()) return found::running;
    const daemon_start begun = start_daemon(server_command(home), home.directory());
    if (begun.error != 0) throw_not_started(begun.error);
    wait_until_answered(home, begun.pid);
    return found::started;
}

std::string use_local_server(notices wanted) {
    const local_home home = local_home::open();
    if (start_local_server(home) == found::started && wanted == notices::shown) {
        tell(
            "started a local server: locks hold on this machine only "
            "(--url or HOLDFAST_URL names a shared one)");
    }
    return home.url();
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
    home.send_line("SHUTDOWN NOSAVE");
    const instant give_up = boot_now() + longest_stop;
    while (home.is_answered()) {
        if (boot_now() >= give_up) throw trouble("the local server does not end; see " + home.log());
        std::this_thread::sleep_for(look_again);
    }
}

}  // namespace holdfast::cli
