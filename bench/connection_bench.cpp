// Measures what the connection layer costs above the bare wire.
//
//   connection.throughput       8 threads, each with 64 requests in flight, through one client and its one
//   link;
//                               the floor is redis-benchmark with 8 links of 64 requests each
//   connection.roundtrip        one blocking caller over TCP; the floor is send() and recv() on a blocking
//   socket connection.roundtrip.unix   the same over a unix socket
//
// All send the same script, the smallest that a lock needs: is the key's value mine? What redis-benchmark
// does with a link is what a thread does here: put 64 requests in, wait until all are answered, again. The
// server's own count of calls is held against what was meant to be sent; a run in which they differ is no measurement.

#include "api/runtime/core.hpp"
#include "bare_socket.hpp"
#include "redis/session/command_writer.hpp"
#include "support.hpp"

#include <sys/resource.h>
#include <array>
#include <barrier>
#include <memory>
#include <optional>
#include <thread>

namespace holdfast::bench {
namespace {

constexpr std::size_t threads = 8;
constexpr std::size_t in_flight = 64;
constexpr std::size_t batches = 150;  // of each thread, in each round
constexpr std::size_t requests = threads * in_flight * batches;
constexpr int throughput_rounds = 11;

constexpr int roundtrip_rounds = 15;
constexpr int slices = 10;  // of a round, bare and holdfast in turn, so that both meet the same weather
constexpr int calls_per_slice = 100;

constexpr std::string_view script_text = "return redis.call('GET',KEYS[1])==ARGV[1] and 1 or 0";
constexpr std::string_view key = "hf:{bench}";
constexpr std::string_view value = "5b1f0c9e-7d42-4c43-9a3e-1f6f1e0f2d11";

// The small script, loaded into the server, and the key it looks at.
class subject {
public:
    explicit subject(const server_place& server) : admin_(bare_socket::over_tcp(server)) {
        const std::string loaded = admin_.bulk(redis::encoded_command({"SCRIPT", "LOAD", script_text}));
        sha1_ = loaded.substr(loaded.find('\n') + 1, 40);
        admin_.line(redis::encoded_command({"SET", key, value}));
        source_ = {"bench/compare", sha1_, script_text};
    }

    const std::string& sha1() const noexcept { return sha1_; }

    // As EVALSHA of a bare socket.
    std::string wire() const { return redis::encoded_command({"EVALSHA", sha1_, "1", key, value}); }

    // As a holdfast command.
    void write_into(redis::command& request) const {
        std::string& out = request.script_payload(source_, 3);
        for (const std::string_view argument : {std::string_view("1"), key, value}) {
            out += '$';
            out += std::to_string(argument.size());
            out += "\r\n";
            out += argument;
            out += "\r\n";
        }
    }

    void forget_calls() { admin_.line(redis::encoded_command({"CONFIG", "RESETSTAT"})); }

    // Throws unless the server ran it that often since forget_calls(), each time without an error.
    void expect_calls(std::size_t wanted) {
        const std::string stats = admin_.bulk(redis::encoded_command({"INFO", "commandstats"}));
        const std::size_t at = stats.find("cmdstat_evalsha:calls=" + std::to_string(wanted) + ',');
        if (at != std::string::npos &&
            stats.substr(at, stats.find('\n', at) - at).find("failed_calls=0") != std::string::npos)
            return;
        throw std::runtime_error("the server did not run the script " + std::to_string(wanted) + " times:\n" + stats);
    }

    // Since it started, in microseconds.
    double server_processor_time() {
        const std::string usage = admin_.bulk(redis::encoded_command({"INFO", "cpu"}));
        const auto seconds = [&usage](std::string_view field) {
            return std::stod(usage.substr(usage.find(field) + field.size()));
        };
        return (seconds("used_cpu_sys:") + seconds("used_cpu_user:")) * 1e6;
    }

private:
    bare_socket admin_;
    std::string sha1_;
    redis::script source_;
};

void expect_yes(const redis::reply_view& reply) {
    if (reply.type() == redis::resp_type::integer && reply.integer() == 1) return;
    std::fprintf(stderr, "the script answered %.*s\n", static_cast<int>(reply.text().size()), reply.text().data());
    std::abort();
}

[[noreturn]] void give_up(const failure& why) {
    std::fprintf(stderr, "a request failed: %s\n", why.detail.c_str());
    std::abort();
}

// One thread's 64 requests.
class batch final : private serial_task {
public:
    batch(api::core& where, const subject& what) : core_(where) {
        for (request& each : requests_) {
            each.owner = this;
            what.write_into(each);
        }
    }

    void round_trip() {
        answered_.emplace();
        open_ = in_flight;
        core_.enter(*this);
        core_.loop().until(*answered_);
    }

private:
    struct request final : redis::command {
        void on_reply(const redis::reply_view& reply, instant) override {
            expect_yes(reply);
            owner->one_answered();
        }
        void on_failure(const failure& why, instant) override { give_up(why); }
        batch* owner = nullptr;
    };

    void run() override {
        const instant now = boot_now();
        for (request& each : requests_) {
            each.give_up_at(now + core_.request_timeout());
            core_.server(0).submit(each, now);
        }
    }

    void one_answered() {
        if (--open_ == 0) core_.loop().end(*answered_);
    }

    api::core& core_;
    std::array<request, in_flight> requests_;
    std::size_t open_ = 0;
    std::optional<api::loop::wait> answered_;
};

double holdfast_throughput(api::core& core, const subject& what) {
    std::barrier everybody(threads + 1);
    std::vector<std::thread> running;
    for (std::size_t i = 0; i < threads; ++i) {
        running.emplace_back([&] {
            batch mine(core, what);
            everybody.arrive_and_wait();
            for (std::size_t j = 0; j < batches; ++j) mine.round_trip();
        });
    }
    everybody.arrive_and_wait();
    const double taken = microseconds([&] {
        for (std::thread& each : running) each.join();
    });
    return static_cast<double>(requests) / taken * 1e6;
}

// The last line of its CSV is "the command","requests per second",...
double redis_benchmark_throughput(const server_place& server, const subject& what) {
    const std::string command = "redis-benchmark -h 127.0.0.1 -p " + std::to_string(server.port) + " -c " +
                                std::to_string(threads) + " -P " + std::to_string(in_flight) + " -n " +
                                std::to_string(requests) + " --csv EVALSHA " + what.sha1() + " 1 '" + std::string(key) +
                                "' " + std::string(value);
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> output(::popen(command.c_str(), "r"), &::pclose);
    if (!output) throw std::runtime_error("cannot start redis-benchmark");
    std::string last;
    for (char line[4096]; std::fgets(line, sizeof line, output.get()) != nullptr;) last = line;
    const std::size_t at = last.find("\",\"");
    if (at == std::string::npos) throw std::runtime_error("redis-benchmark said: " + last);
    return std::stod(last.substr(at + 3));
}

// Processor time of this process or of its ended children, in microseconds.
double processor_time(__rusage_who whose) {
    rusage used{};
    ::getrusage(whose, &used);
    const auto total = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
    };
    return total(used.ru_utime) + total(used.ru_stime);
}

// What a request cost in processor time, on either side of the wire. Other work on the machine moves it far
// less than throughput, so it tells whether a throughput measured in a crowd can be believed.
struct request_cost {
    std::vector<double> client_us;
    std::vector<double> server_us;

    template <typename Work>
    double during(subject& what, __rusage_who client, Work&& work) {
        what.forget_calls();
        const double server_before = what.server_processor_time();
        const double client_before = processor_time(client);
        const double result = work();
        client_us.push_back((processor_time(client) - client_before) / static_cast<double>(requests));
        server_us.push_back((what.server_processor_time() - server_before) / static_cast<double>(requests));
        what.expect_calls(requests);
        return result;
    }
};

figure measure_throughput(const server_place& server, subject& what) {
    figure result(
        {.name = "connection.throughput", .unit = "requests/s", .direction = figure::better::higher, .target = 0.9});
    request_cost ours;
    request_cost theirs;
    const auto core = api::make_core({server.tcp_url()}, {});
    batch(*core, what).round_trip();  // connected and warm
    for (int i = 0; i < throughput_rounds; ++i) {
        figure::round measured;
        measured.holdfast = ours.during(what, RUSAGE_SELF, [&] { return holdfast_throughput(*core, what); });
        measured.floor = theirs.during(what, RUSAGE_CHILDREN, [&] { return redis_benchmark_throughput(server, what); });
        result.add(measured);
    }
    result.note("holdfast_client_cpu_us", median(ours.client_us));
    result.note("floor_client_cpu_us", median(theirs.client_us));
    result.note("holdfast_server_cpu_us", median(ours.server_us));
    result.note("floor_server_cpu_us", median(theirs.server_us));
    return result;
}

// What a blocking call of the API is made of, without a lock's own work.
class blocking_call final : private serial_task, private redis::command {
public:
    blocking_call(api::core& where, const subject& what) : core_(where) { what.write_into(*this); }

    void wait() {
        core_.enter(*this);
        core_.loop().until(answered_);
    }

private:
    void run() override {
        const instant now = boot_now();
        give_up_at(now + core_.request_timeout());
        core_.server(0).submit(*this, now);
    }
    void on_reply(const redis::reply_view& reply, instant) override {
        expect_yes(reply);
        core_.loop().end(answered_);
    }
    void on_failure(const failure& why, instant) override { give_up(why); }

    api::core& core_;
    api::loop::wait answered_;
};

template <typename Call>
void time_calls(std::vector<double>& into, Call&& call) {
    for (int i = 0; i < calls_per_slice; ++i) into.push_back(microseconds(call));
}

figure measure_roundtrip(figure::meaning meaning, std::string_view url, bare_socket bare, subject& what) {
    figure result(meaning);
    const auto core = api::make_core({std::string(url)}, {});
    const std::string wire = what.wire();
    const auto call_bare = [&] {
        if (bare.line(wire) != ":1") throw std::runtime_error("the script did not answer 1");
    };
    const auto call_holdfast = [&] { blocking_call(*core, what).wait(); };
    std::vector<double> warm_up;
    time_calls(warm_up, call_bare);
    time_calls(warm_up, call_holdfast);

    std::vector<double> holdfast_p99;
    std::vector<double> floor_p99;
    what.forget_calls();
    for (int i = 0; i < roundtrip_rounds; ++i) {
        std::vector<double> holdfast;
        std::vector<double> floor;
        for (int j = 0; j < slices; ++j) {
            time_calls(floor, call_bare);
            time_calls(holdfast, call_holdfast);
        }
        result.add({.holdfast = median(holdfast), .floor = median(floor)});
        holdfast_p99.push_back(percentile(std::move(holdfast), 99));
        floor_p99.push_back(percentile(std::move(floor), 99));
    }
    what.expect_calls(std::size_t{2} * roundtrip_rounds * slices * calls_per_slice);
    result.note("holdfast_p99", median(holdfast_p99));
    result.note("floor_p99", median(floor_p99));
    return result;
}

std::vector<figure> measure() {
    const server_place server = server_of_this_run();
    subject what(server);
    std::vector<figure> figures;
    figures.push_back(measure_throughput(server, what));
    figures.push_back(measure_roundtrip({.name = "connection.roundtrip", .unit = "us, p50", .target = 1.25},
                                        server.tcp_url(), bare_socket::over_tcp(server), what));
    figures.push_back(measure_roundtrip({.name = "connection.roundtrip.unix", .unit = "us, p50", .target = 1.25},
                                        server.unix_url(), bare_socket::over_unix(server), what));
    return figures;
}

}  // namespace
}  // namespace holdfast::bench

int main(int argc, char** argv) {
    try {
        holdfast::bench::report(holdfast::bench::measure(), argc, argv);
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "%s: %s\n", argv[0], problem.what());
        return 1;
    }
}
