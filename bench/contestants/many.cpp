// A great many locks held at once by one client, renewed in the background, and what that costs.
//
// All are acquired before `ready`. A slice just holds them; its line says what the client used meanwhile: processor
// time, renewals that were confirmed, renewals that failed, holds that were lost. `bytes_per_lock` is what the process
// has grown by since before it made and acquired them, lock object and lease included: the most it ever had.

#include "contestants/contestant.hpp"

#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <deque>
#include <latch>

namespace holdfast::bench {
namespace {

enum class memory { now, most };

double resident_bytes(memory which) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        double kibibytes = 0;
        if (word == (which == memory::now ? "VmRSS:" : "VmHWM:") && status >> kibibytes) return kibibytes * 1024;
    }
    throw std::runtime_error("/proc does not say how much memory this process has");
}

class crowd_of_locks {
public:
    crowd_of_locks(const client& redis, std::size_t count) : leases_(count) {
        constexpr std::size_t at_once = 500;
        for (std::size_t i = 0; i < count; ++i) locks_.emplace_back(redis, "many:" + std::to_string(i));
        for (std::size_t first = 0; first < count; first += at_once) acquire(first, std::min(first + at_once, count));
    }

private:
    void acquire(std::size_t first, std::size_t end) {
        std::latch all(static_cast<std::ptrdiff_t>(end - first));
        for (std::size_t i = first; i < end; ++i) {
            locks_[i].async_acquire([this, &all, i](boost::system::error_code failed, lease hold) {
                if (failed) std::abort();
                leases_[i] = std::move(hold);
                all.count_down();
            });
        }
        all.wait();
    }

    std::deque<mutex> locks_;
    std::vector<lease> leases_;
};

void run(const settings& chosen) {
    const auto count = static_cast<std::size_t>(chosen.number("locks", 100'000));
    client_options options;
    options.metrics = std::make_shared<metrics>();
    const client redis(chosen.text("url"), options);
    { const lease warm = mutex(redis, "warm").acquire(); }
    const double before = resident_bytes(memory::now);
    const crowd_of_locks held(redis, count);
    converse([&](double seconds) {
        const double cpu_before = processor_time_us();
        const auto renewals = options.metrics->renewals.load();
        const double start = now_us();
        pause_us(static_cast<long>(seconds * 1e6));
        json_line line;
        line.add("cycles", static_cast<double>(options.metrics->renewals.load() - renewals));
        line.add("elapsed_us", now_us() - start);
        line.add("cpu_us", processor_time_us() - cpu_before);
        line.add("failed_renewals", static_cast<double>(options.metrics->failed_renewals.load()));
        line.add("losses", static_cast<double>(options.metrics->losses.load()));
        line.add("bytes_per_lock", (resident_bytes(memory::most) - before) / static_cast<double>(count));
        line.print();
    });
    std::_Exit(0);  // giving back so many one after the other is nobody's workload; their leases end
}

}  // namespace
}  // namespace holdfast::bench

int main(int argc, char** argv) {
    using namespace holdfast::bench;
    return compete(argc, argv, run);
}
