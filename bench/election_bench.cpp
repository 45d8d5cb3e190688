// Election: how soon somebody leads again, and how soon others know, each figure against its floor in the same round.
//
//   election.failover   from kill -9 of the leader's process to the next leader, in ms; the floor is the lease, which
//                       has to end before: `over the lease` says by how much it was passed
//   election.hand_over  from resign() to the next leader in another process, in us; the floor is a bare PUBLISH from
//   one
//                       process to another
//   election.observed   from resign() to an observer in a third process that was told the next leader, in us; the same
//                       floor. The observer is told by a message, asks, and is answered
//
// The processes are forked before any client exists. They write down instants of a clock that they share.

#include "bare_socket.hpp"
#include "redis/session/command_writer.hpp"
#include "support.hpp"

#include <holdfast/holdfast.hpp>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <optional>
#include <string>

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;

constexpr int failovers = 9;
constexpr int changes = 300;
constexpr auto lease_time = 1000ms;
constexpr const char* floor_channel = "bench:floor";

std::int64_t now_ns() {
    return std::chrono::steady_clock::now().time_since_epoch().count();
}

// In shared memory. Tokens tell which leadership is meant.
struct board {
    std::atomic<std::uint64_t> leads = 0;    // the token of who leads, in another process
    std::atomic<std::int64_t> leads_ns = 0;  // since when
    std::atomic<std::uint64_t> seen = 0;     // the last token that the observer was told
    std::atomic<std::int64_t> seen_ns = 0;   // and when
    std::atomic<std::int64_t> heard_ns = 0;  // when the last bare message came
    std::atomic<int> resigns = 0;            // how often the other process has to resign
    std::atomic<bool> listens = false;
};

template <typename Predicate>
void wait_until(Predicate&& predicate) {
    while (!predicate()) std::this_thread::sleep_for(50us);
}

class child {
public:
    template <typename Function>
    explicit child(Function function) : pid_(::fork()) {
        if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
        if (pid_ != 0) return;
        function();
        ::_exit(0);
    }
    child(const child&) = delete;
    ~child() { kill(); }

    void kill() {
        if (pid_ < 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }

private:
    pid_t pid_;
};

board& make_board() {
    void* const room = ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    return *new (room) board;
}

void lead_until_killed(board& shared, const server_place& server) {
    const client link{server.tcp_url()};
    election vote{link, "failover", {.lease = lease_time}};
    const lease leadership = vote.campaign("to be killed");
    shared.leads = leadership.token();
    for (;;) ::pause();
}

// The leader is killed at another moment between two renewals each time.
figure measure_failover(const server_place& server) {
    figure result({"election.failover", "ms", figure::better::lower, 1.25});
    board& shared = make_board();
    double worst = 0;
    for (int i = 0; i < failovers; ++i) {
        shared.leads = 0;
        child leader([&] { lead_until_killed(shared, server); });
        wait_until([&] { return shared.leads != 0; });
        std::optional<child> next;
        shared.leads_ns = 0;
        next.emplace([&] {
            const client link{server.tcp_url()};
            election vote{link, "failover", {.lease = lease_time}};
            lease leadership = vote.campaign("the next");
            shared.leads_ns = now_ns();
            vote.resign(leadership);
        });
        std::this_thread::sleep_for(lease_time + i * lease_time / (3 * failovers));
        const std::int64_t killed = now_ns();
        leader.kill();
        wait_until([&] { return shared.leads_ns != 0; });
        const double took_ms = static_cast<double>(shared.leads_ns - killed) / 1e6;
        worst = std::max(worst, took_ms - static_cast<double>(lease_time.count()));
        result.add({.holdfast = took_ms, .floor = static_cast<double>(lease_time.count())});
        std::this_thread::sleep_for(50ms);  // the resignation is on its way
    }
    result.note("over the lease, worst", worst);
    return result;
}

void observe(board& shared, const server_place& server) {
    const client link{server.tcp_url()};
    const election vote{link, "told"};
    const watching eye = vote.observe([&](const std::optional<leader>& who) {
        shared.seen_ns = now_ns();
        shared.seen = who ? who->token : 1;
    });
    for (;;) ::pause();
}

void listen_bare(board& shared, const server_place& server) {
    bare_socket link = bare_socket::over_tcp(server);
    link.send(redis::encoded_command({"SUBSCRIBE", floor_channel}));
    while (link.hears_something()) {
        shared.heard_ns = now_ns();
        shared.listens = true;
    }
}

// Campaigns again and again, and resigns when it is told to.
void take_turns(board& shared, const server_place& server) {
    const client link{server.tcp_url()};
    election vote{link, "told"};
    for (int turn = 1;; ++turn) {
        lease leadership = vote.campaign("the other");
        shared.leads_ns = now_ns();
        shared.leads = leadership.token();
        wait_until([&] { return shared.resigns >= turn; });
        shared.leads = 0;
        vote.resign(leadership);
    }
}

double bare_message_us(board& shared, bare_socket& link) {
    const std::string publish = redis::encoded_command({"PUBLISH", floor_channel, "x"});
    shared.heard_ns = 0;
    const std::int64_t sent = now_ns();
    link.line(publish);
    wait_until([&] { return shared.heard_ns != 0; });
    return static_cast<double>(shared.heard_ns - sent) / 1e3;
}

std::vector<figure> measure_told(const server_place& server) {
    figure handed({"election.hand_over", "us", figure::better::lower, 5});
    figure observed({"election.observed", "us", figure::better::lower, 5});
    board& shared = make_board();
    child listener([&] { listen_bare(shared, server); });
    child observer([&] { observe(shared, server); });
    child rival([&] { take_turns(shared, server); });
    wait_until([&] { return shared.listens && shared.leads != 0 && shared.seen == shared.leads; });
    const client link{server.tcp_url()};
    bare_socket bare = bare_socket::over_tcp(server);
    election vote{link, "told"};
    std::vector<double> slowest;
    for (int i = 0; i < changes; ++i) {
        // The other one resigns; this one leads by a hand-over, and is observed.
        const double floor = bare_message_us(shared, bare);
        ++shared.resigns;
        lease leadership = vote.campaign("this one");
        wait_until([&] { return shared.seen == leadership.token(); });
        // The other one waits in the queue when this one resigns.
        std::this_thread::sleep_for(2ms);
        const std::int64_t resigned = now_ns();
        vote.resign(leadership);
        wait_until([&] { return shared.leads != 0 && shared.seen == shared.leads; });
        handed.add({.holdfast = static_cast<double>(shared.leads_ns - resigned) / 1e3, .floor = floor});
        observed.add({.holdfast = static_cast<double>(shared.seen_ns - resigned) / 1e3, .floor = floor});
        slowest.push_back(static_cast<double>(shared.seen_ns - resigned) / 1e3);
    }
    observed.note("p99", percentile(slowest, 99));
    return {std::move(handed), std::move(observed)};
}

}  // namespace
}  // namespace holdfast::bench

int main(int argc, char** argv) {
    try {
        using namespace holdfast::bench;
        const server_place server = server_of_this_run();
        std::vector<figure> figures{measure_failover(server)};
        for (figure& each : measure_told(server)) figures.push_back(std::move(each));
        report(figures, argc, argv);
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "%s: %s\n", argv[0], problem.what());
        return 1;
    }
}
