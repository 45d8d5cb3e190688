// Read, wait, write: under a lock on several servers, on a store that checks tokens.
//
// The store is a file. Each access shows a token. From then on the store refuses reads and writes with a smaller token.
// So an update can be lost only if two grants have tokens in the wrong order.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "worker.hpp"

namespace holdfast::chaos {
namespace {

class store {
public:
    explicit store(std::string path) : path_(std::move(path)) {}

    /// The count; -1 if the token is too small.
    std::int64_t open(std::uint64_t token) const {
        return exclusively([&](content& now) -> std::int64_t {
            if (token < now.token) return -1;
            now.token = token;
            return static_cast<std::int64_t>(now.count);
        });
    }
    /// False if the token is too small by now.
    bool write(std::uint64_t token, std::int64_t count) const {
        return exclusively([&](content& now) -> std::int64_t {
                   if (token != now.token) return 0;
                   now.count = static_cast<std::uint64_t>(count);
                   return 1;
               }) == 1;
    }

private:
    struct content {
        std::uint64_t count = 0;
        std::uint64_t token = 0;
    };

    template <typename Operation>
    std::int64_t exclusively(Operation operation) const {
        const int guard = ::open((path_ + ".guard").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
        if (guard < 0 || ::flock(guard, LOCK_EX) != 0) throw std::runtime_error("the store cannot be guarded");
        content now;
        std::ifstream(path_) >> now.count >> now.token;
        const std::int64_t answer = operation(now);
        std::ofstream file(path_, std::ios::trunc);
        file << now.count << ' ' << now.token << '\n';
        if (!file.flush()) throw std::runtime_error("the store is not writable");
        ::close(guard);
        return answer;
    }

    std::string path_;
};

/// True if the update was made.
bool section(const lease& held, const store& resource, milliseconds pause) {
    const auto lost = held.lost();
    const auto from = now_us();
    if (!believes(held, lost)) return false;
    const std::int64_t count = resource.open(held.token());
    if (count < 0) {
        tell("late");
        return false;
    }
    std::this_thread::sleep_for(pause);
    const auto before_asking = now_us();
    if (!believes(held, lost)) return false;
    tell("interval " + std::to_string(from) + ' ' + std::to_string(before_asking) + ' ' + std::to_string(held.token()));
    return resource.write(held.token(), count + 1);
}

std::vector<std::string> split(const std::string& text) {
    std::istringstream words(text);
    std::vector<std::string> found;
    for (std::string word; words >> word;) found.push_back(word);
    return found;
}

}  // namespace

int lock_set(arguments given) {
    const auto end = end_of_input();
    const milliseconds longest = to_milliseconds(given[3]);
    const client redis{split(given[0]), {.max_lease = longest}};
    mutex lock{redis, given[1], {.lease = longest}};
    const store resource{given[2]};
    std::mt19937 chance{static_cast<unsigned>(::getpid())};
    std::uint64_t updates = 0;
    while (!end.stop_requested()) {
        try {
            lease held = lock.acquire({.stop = end});
            if (section(held, resource, milliseconds{chance() % 4})) ++updates;
            held.release();
        } catch (const error& failure) {
            if (failure.condition() == errc::cancelled) break;
            tell("told " + std::to_string(now_us()) + ' ' + failure.what());
            std::this_thread::sleep_for(milliseconds{20});
        }
    }
    tell("done " + std::to_string(updates));
    return 0;
}

}  // namespace holdfast::chaos
