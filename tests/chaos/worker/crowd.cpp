#include <thread>
#include <vector>

#include "worker.hpp"

namespace holdfast::chaos {
namespace {

struct member {
    std::string url;
    std::string name;
    client_options of_client;
    milliseconds lease_time;
    milliseconds hold_time;
    mutex_options of_lock;
    std::stop_token end;
};

/// Holds for a while, or until the validity ends, and reports the interval of its belief.
void believe_for_a_while(const member& self, const lease& held) {
    const auto lost = held.lost();
    const auto from = now_us();
    auto to = from;
    const auto enough = from + std::chrono::microseconds{self.hold_time}.count();
    bool ever = false;
    while (to < enough) {
        const auto before_asking = now_us();
        if (!believes(held, lost)) break;
        ever = true;
        to = before_asking;
        std::this_thread::sleep_for(milliseconds{3});
    }
    if (!ever) return;
    tell("interval " + self.name + ' ' + std::to_string(from) + ' ' + std::to_string(to) + ' ' +
         std::to_string(held.token()));
}

void tell_error(const member& self, const std::string& reason) {
    tell("told " + self.name + ' ' + std::to_string(now_us()) + ' ' + reason);
}

void run(const member& self) {
    const client redis{self.url, self.of_client};
    mutex_options chosen = self.of_lock;
    chosen.lease = self.lease_time;
    mutex lock{redis, self.name, chosen};
    while (!self.end.stop_requested()) {
        try {
            lease held = lock.acquire({.stop = self.end});
            believe_for_a_while(self, held);
            if (const auto outcome = held.release()) tell_error(self, outcome.message());
        } catch (const error& failure) {
            if (failure.condition() == errc::cancelled) break;
            tell_error(self, failure.what());
            std::this_thread::sleep_for(milliseconds{20});
        }
    }
}

}  // namespace

int crowd(arguments given) {
    client_options of_client;
    of_client.max_lease = to_milliseconds(given[4]);
    const bool keeps = given.size() > 7 && given[7] == "keeps";
    const mutex_options of_lock = keeps ? mutex_options{.keep = milliseconds{300}, .passes = 4} : mutex_options{};
    if (given[5] == "mistrusted") of_client.after_restart = restarted_server::mistrusted;
    {
        std::vector<std::jthread> members;
        for (unsigned long index = 0; index < std::stoul(given[2]); ++index) {
            const member self{given[0],
                              given[1] + std::to_string(index),
                              of_client,
                              to_milliseconds(given[3]),
                              to_milliseconds(given[6]),
                              of_lock,
                              end_of_input()};
            members.emplace_back([self] { run(self); });
        }
    }
    tell("done");
    return 0;
}

}  // namespace holdfast::chaos
