// The floor: blocking sockets that send the two scripts of a lock and nothing else. Nobody waits in line, nothing is
// renewed, nothing is checked but that the scripts said yes.
//
//   link=tcp|unix   how to reach the server of this run
//   kind=mutex|read  which lock's scripts
//   look=US         look at the socket for so long before blocking
//   ports=P,P,P     a majority's floor: each step goes to all of these before the answers are read
//   print=acquire|release   show that command's words as redis-benchmark takes them, one a line, and end
//   token=N         for print=release

#include "bare_socket.hpp"
#include "contestants/contestant.hpp"
#include "contestants/script_call.hpp"
#include "redis/session/command_writer.hpp"

#include <memory>
#include <sstream>

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;

// One name's acquire and release, encoded.
class lock_scripts {
public:
    lock_scripts(const settings& chosen, const std::string& name)
        : kind_(chosen.text("kind", "mutex") == "read" ? wire::lock_kind::read_write : wire::lock_kind::mutex),
          keys_(wire::make_keys(wire::lock_name(name), wire::key_naming::tagged, "hf:")),
          acquire_(folder() + "/acquire", kind_, keys_),
          release_(folder() + "/release", kind_, keys_),
          id_("hf_benchbenchbench0." + name.substr(name.rfind(':') + 1) + ".benchbenchbenchbench00") {}

    std::string acquire() const {
        return acquire_.encode(
            wire::acquire_request{.id = id_,
                                  .wants = kind_ == wire::lock_kind::mutex ? wire::wish::write : wire::wish::read,
                                  .lease = 30s,
                                  .channel = "hf:wake:benchbenchbench0",
                                  .ticket = {},
                                  .poll_interval = 10s,
                                  .queue_retention = 60s});
    }
    std::string release(std::uint64_t token) const {
        return release_.encode(wire::release_request{.id = id_, .token = token});
    }

private:
    std::string folder() const { return kind_ == wire::lock_kind::mutex ? "mutex" : "rw"; }

    wire::lock_kind kind_;
    wire::lock_keys keys_;
    script_call acquire_;
    script_call release_;
    std::string id_;
};

// The token in {1, token}, which has its own line at the end, as a number or as a string.
std::string_view token_in(std::string_view reply) {
    if (!reply.starts_with("*2\r\n:1\r\n")) throw std::runtime_error("not acquired: " + std::string(reply));
    const std::string_view last = reply.substr(reply.rfind('\n') + 1);
    return last.starts_with(':') ? last.substr(1) : last;
}

void expect_released(std::string_view reply) {
    if (!reply.starts_with("*") || reply.find("\r\n:1\r\n") == std::string_view::npos)
        throw std::runtime_error("not released: " + std::string(reply));
}

// One caller: a socket to each server, usually just one.
class caller {
public:
    caller(const settings& chosen, std::size_t number)
        : scripts_(chosen,
                   chosen.text("kind") == "read"
                       ? "bench:" + std::to_string(number + 1000 * static_cast<std::size_t>(chosen.number("process")))
                       : "bench:" + std::to_string(chosen.number("process")) + ":" + std::to_string(number)),
          acquire_(scripts_.acquire()) {
        for (const server_place& place : servers(chosen)) {
            releases_.emplace_back(scripts_);
            sockets_.push_back(std::make_unique<bare_socket>(
                chosen.text("link", "tcp") == "unix" ? bare_socket::over_unix(place) : bare_socket::over_tcp(place)));
        }
        const std::chrono::microseconds look(chosen.number("look"));
        for (const auto& each : sockets_) {
            each->look_before_blocking(look);
            for (const wire::script& script : wire::all())
                each->bulk(redis::encoded_command({"SCRIPT", "LOAD", script.text}));
        }
    }

    void acquire() {
        for (const auto& each : sockets_) each->send(acquire_);
        for (std::size_t i = 0; i < sockets_.size(); ++i) releases_[i].put(token_in(sockets_[i]->received_lines()));
    }

    void release() {
        for (std::size_t i = 0; i < sockets_.size(); ++i) sockets_[i]->send(releases_[i].text);
        for (const auto& each : sockets_) expect_released(each->received_lines());
    }

private:
    // A release that is encoded once; only the token changes. Each server of several has one of its own.
    struct release_command {
        explicit release_command(const lock_scripts& scripts)
            : text(scripts.release(std::stoull(placeholder))), place(text.find(placeholder)) {
            if (place == std::string::npos) throw std::runtime_error("the release has no token");
        }

        void put(std::string_view token) {
            if (token.size() != placeholder.size()) throw std::runtime_error("an odd token: " + std::string(token));
            text.replace(place, token.size(), token);
        }

        static inline const std::string placeholder = "1000000000000001";  // microseconds have so many digits
        std::string text;
        std::size_t place;
    };

    static std::vector<server_place> servers(const settings& chosen) {
        std::vector<server_place> places;
        std::istringstream list(chosen.text("ports"));
        for (std::string port; std::getline(list, port, ',');)
            places.push_back({static_cast<std::uint16_t>(std::stoul(port)), {}});
        if (places.empty()) places.push_back(server_of_this_run());
        return places;
    }

    lock_scripts scripts_;
    std::string acquire_;
    std::vector<std::unique_ptr<bare_socket>> sockets_;
    std::vector<release_command> releases_;
};

void print_words(const settings& chosen) {
    const lock_scripts one(chosen, "bench");
    const std::string command = chosen.text("print") == "acquire"
                                    ? one.acquire()
                                    : one.release(static_cast<std::uint64_t>(chosen.number("token")));
    std::istringstream lines(command);
    std::string line;
    std::getline(lines, line);  // how many
    while (std::getline(lines, line) && std::getline(lines, line)) {
        line.pop_back();
        std::cout << line << '\n';
    }
}

}  // namespace
}  // namespace holdfast::bench

int main(int argc, char** argv) {
    using namespace holdfast::bench;
    return compete(argc, argv, [](const settings& chosen) {
        if (!chosen.text("print").empty()) return print_words(chosen);
        std::vector<std::unique_ptr<caller>> callers;
        for (long i = 0; i < chosen.number("callers", 1); ++i)
            callers.push_back(std::make_unique<caller>(chosen, static_cast<std::size_t>(i)));
        const blocking_cycle cycle{.acquire = [&](std::size_t i) { callers[i]->acquire(); },
                                   .release = [&](std::size_t i) { callers[i]->release(); }};
        converse([&](double seconds) { run_blocking_slice(chosen, cycle, seconds); });
    });
}
