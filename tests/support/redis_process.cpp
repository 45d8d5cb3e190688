#include "support/redis_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "support/eventually.hpp"
#include "support/sockets.hpp"
#include "support/spawn.hpp"

namespace holdfast::testing {
namespace {

constexpr std::chrono::seconds server_start_limit{20};
constexpr std::chrono::seconds stop_limit{10};

// A test with its own users may have disabled the default user; the harness then has a user of its own.
admin_login login_for(const server_options& options) {
    if (!options.acl_users.empty()) return {.user = "harness", .password = "harness-of-the-test"};
    return {.user = {}, .password = options.requirepass};
}

std::string config_string(std::string_view text) {
    std::string out{"\""};
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + '"';
}

}  // namespace

redis_server::process::process(server_options options)
    : options_{std::move(options)}, login_{login_for(options_)}, link_{socket_path(), login_} {
    if (options_.tls) tls_ = options_.tls_from ? *options_.tls_from : make_tls_material(directory());
    start_on_free_ports();
}

redis_server::process::~process() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
}

void redis_server::process::start_on_free_ports() {
    for (int attempt = 0; attempt < 20; ++attempt) {
        if (options_.tcp) port_ = free_port();
        do {
            if (options_.tls) tls_port_ = free_port();
        } while (options_.tls && tls_port_ == port_);
        if (start() == outcome::ready) return;
    }
    throw std::runtime_error{"redis-server found every port taken"};
}

void redis_server::process::start_again() {
    if (running()) throw std::logic_error{"redis-server runs already"};
    bool ready = false;
    // An outgoing connection may occupy the port for a moment.
    if (!eventually([&] { return ready = (start() == outcome::ready); }, server_start_limit)) {
        throw std::runtime_error{"the port of the redis-server was taken while it was down"};
    }
}

redis_server::process::outcome redis_server::process::start() {
    write_config();
    std::filesystem::remove(socket_path());
    std::ofstream{log_path(), std::ios::trunc};
    launch();
    if (eventually([&] { return !running() || answers(); }, server_start_limit) && running()) return outcome::ready;
    const std::string log = log_tail();
    if (running()) kill();
    if (log.find("Address already in use") != std::string::npos) return outcome::port_taken;
    throw std::runtime_error{"redis-server did not start; its log ends:\n" + log};
}

void redis_server::process::launch() {
    const unique_fd log{::open(log_path().c_str(), O_WRONLY | O_APPEND | O_CLOEXEC)};
    if (!log) throw_errno("open " + log_path().string());
    std::vector<std::string> words{"redis-server", (directory() / "redis.conf").string()};
    if (options_.sentinel) words.emplace_back("--sentinel");
    spawn_request request{
        .command = std::move(words), .directory = directory(), .output = log.get(), .errors = log.get()};
    if (options_.clock_ahead != std::chrono::seconds{0}) {
        request.environment = {{"LD_PRELOAD", HOLDFAST_SHIFTED_CLOCK},
                               {"HOLDFAST_CLOCK_AHEAD_S", std::to_string(options_.clock_ahead.count())}};
    }
    if (options_.clock_moves) {
        if (!std::filesystem::exists(clock_path())) set_clock_ahead(std::chrono::microseconds{0});
        request.environment = {{"LD_PRELOAD", HOLDFAST_SHIFTED_CLOCK},
                               {"HOLDFAST_CLOCK_AHEAD_FILE", clock_path().string()}};
    }
    pid_ = spawn(request);
}

// The server has mapped the file: it is written in place.
void redis_server::process::set_clock_ahead(std::chrono::microseconds by) {
    if (!options_.clock_moves) throw std::logic_error{"the clock of this server does not move"};
    const unique_fd file{::open(clock_path().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
    if (!file) throw_errno("open " + clock_path().string());
    const std::int64_t us = by.count();
    if (::pwrite(file.get(), &us, sizeof us, 0) != sizeof us) throw_errno("write " + clock_path().string());
}

// LOADING is an answer, too, but no test wants to start before the data is loaded.
bool redis_server::process::answers() {
    if (!std::filesystem::exists(socket_path())) return false;
    try {
        return call({"PING"}).text == "PONG";
    } catch (const std::runtime_error&) {
        return false;
    }
}

void redis_server::process::write_config() const {
    std::ofstream out{directory() / "redis.conf"};
    out << "bind 127.0.0.1\nprotected-mode no\ndaemonize no\n"
        << "port " << port_ << "\n"
        << "unixsocket " << config_string(socket_path().string()) << "\nunixsocketperm 700\n"
        << "dir " << config_string(directory().string()) << "\n"
        << "save \"\"\n"
        << "appendonly " << (options_.persistent ? "yes" : "no") << "\nappendfsync always\n";
    if (options_.tls) write_tls_config(out);
    if (!options_.requirepass.empty()) out << "requirepass " << config_string(options_.requirepass) << "\n";
    for (const std::string& user : options_.acl_users) out << "user " << user << "\n";
    if (!login_.user.empty()) {
        out << "user " << login_.user << " on >" << login_.password << " ~* &* +@all\n";
    }
    for (const std::string& line : options_.config) out << line << "\n";
    if (!out.flush()) throw std::runtime_error{"cannot write redis.conf"};
}

void redis_server::process::write_tls_config(std::ostream& out) const {
    const certificate_files& shown = options_.certificate == server_certificate::localhost    ? tls_.server
                                     : options_.certificate == server_certificate::wrong_host ? tls_.wrong_host
                                     : options_.certificate == server_certificate::expired    ? tls_.expired
                                                                                              : tls_.not_yet_valid;
    out << "tls-port " << tls_port_ << "\n"
        << "tls-cert-file " << config_string(shown.certificate.string()) << "\n"
        << "tls-key-file " << config_string(shown.key.string()) << "\n"
        << "tls-ca-cert-file " << config_string(tls_.ca.string()) << "\n"
        << "tls-auth-clients " << (options_.tls_client_auth ? "yes" : "no") << "\n";
}

bool redis_server::process::running() {
    if (pid_ == 0) return false;
    if (!wait_for_exit(pid_, std::chrono::milliseconds{0})) return true;
    gone();
    return false;
}

void redis_server::process::gone() noexcept {
    pid_ = 0;
    const std::lock_guard guard{link_mutex_};
    link_.disconnect();
}

void redis_server::process::signal(int number) {
    if (!running()) throw std::logic_error{"redis-server does not run"};
    if (::kill(pid_, number) != 0) throw_errno("kill");
}

void redis_server::process::kill() {
    signal(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    gone();
}

void redis_server::process::stop() {
    signal(SIGTERM);
    resume();  // a stopped process does not handle SIGTERM
    if (wait_for_exit(pid_, stop_limit)) return gone();
    const std::string log = log_tail();
    kill();
    throw std::runtime_error{"redis-server did not stop at SIGTERM; its log ends:\n" + log};
}

void redis_server::process::pause() {
    signal(SIGSTOP);
    siginfo_t what{};
    while (::waitid(P_PID, static_cast<id_t>(pid_), &what, WSTOPPED | WEXITED | WNOWAIT) != 0) {
        if (errno != EINTR) throw_errno("waitid");
    }
    if (what.si_code != CLD_STOPPED) throw std::runtime_error{"redis-server ended instead of pausing"};
}

void redis_server::process::resume() {
    signal(SIGCONT);
}

void redis_server::process::remove_data() {
    std::filesystem::remove_all(directory() / "appendonlydir");  // since Redis 7
    std::filesystem::remove(directory() / "appendonly.aof");     // before Redis 7
    std::filesystem::remove(directory() / "dump.rdb");
}

redis_reply redis_server::process::call(const std::vector<std::string>& arguments) {
    const std::lock_guard guard{link_mutex_};
    return link_.call(arguments);
}

std::string redis_server::process::log_tail() const {
    std::ifstream in{log_path()};
    std::ostringstream all;
    all << in.rdbuf();
    const std::string text = all.str();
    constexpr std::size_t limit = 4000;
    return text.size() > limit ? text.substr(text.size() - limit) : text;
}

}  // namespace holdfast::testing
