#include <unistd.h>

#include <exception>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/boot_clock.hpp"
#include "worker.hpp"

namespace holdfast::chaos {

std::int64_t now_us() {
    return std::chrono::duration_cast<std::chrono::microseconds>(boot_now().time_since_epoch()).count();
}

void tell(const std::string& line) {
    static std::mutex writing;
    const std::lock_guard guard{writing};
    std::cout << line << '\n' << std::flush;
}

std::stop_token end_of_input() {
    // Never destroyed, and the reading thread is never joined: a worker that fails must not wait for the end of its
    // input.
    static std::stop_source& source = *[] {
        auto* made = new std::stop_source;
        std::thread{[made] {
            char ignored[64];
            while (::read(STDIN_FILENO, ignored, sizeof ignored) > 0) continue;
            made->request_stop();
        }}.detach();
        return made;
    }();
    return source.get_token();
}

bool believes(const lease& held, const std::stop_token& lost) {
    return !lost.stop_requested() && held.validity().count() > 0;
}

milliseconds to_milliseconds(const std::string& text) {
    return milliseconds{std::stoll(text)};
}

std::vector<std::string> split(const std::string& text) {
    std::istringstream words(text);
    std::vector<std::string> found;
    for (std::string word; words >> word;) found.push_back(word);
    return found;
}

}  // namespace holdfast::chaos

int main(int count, char** words) {
    using namespace holdfast::chaos;
    const std::map<std::string, int (*)(arguments)> modes = {
        {"count", &holdfast::chaos::count},       {"hold", &holdfast::chaos::hold},
        {"crowd", &holdfast::chaos::crowd},       {"cycle", &holdfast::chaos::cycle},
        {"share", &holdfast::chaos::share},       {"share-hold", &holdfast::chaos::share_hold},
        {"lock-set", &holdfast::chaos::lock_set}, {"permits", &holdfast::chaos::take_permits},
        {"history", &holdfast::chaos::history},
    };
    const std::vector<std::string> given(words + 1, words + count);
    try {
        return modes.at(given.at(0))(arguments{given}.subspan(1));
    } catch (const std::exception& failure) {
        std::cerr << "worker: " << failure.what() << '\n';
        return 2;
    }
}
