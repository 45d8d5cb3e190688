// Preloaded into a redis-server: shifts its wall clock, by HOLDFAST_CLOCK_AHEAD_S seconds or, while it runs, by the
// microseconds in the file HOLDFAST_CLOCK_AHEAD_FILE (eight bytes, which the test may change at any time).
//
// redis-server reads the wall clock by gettimeofday(), and by time() when it starts. Not libfaketime: it allocates
// memory when asked for the time, and the allocator of redis-server asks for the time in order to start.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

const std::atomic<std::int64_t>* map_ahead_us() {
    const char* const path = std::getenv("HOLDFAST_CLOCK_AHEAD_FILE");
    if (path == nullptr) return nullptr;
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) std::abort();
    void* const page = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) std::abort();
    ::close(file);
    return static_cast<const std::atomic<std::int64_t>*>(page);
}

std::int64_t ahead_us() {
    static const std::int64_t fixed_us = [] {
        const char* const text = std::getenv("HOLDFAST_CLOCK_AHEAD_S");
        return text == nullptr ? 0 : std::atoll(text) * 1'000'000;
    }();
    static const std::atomic<std::int64_t>* const changing_us = map_ahead_us();
    return fixed_us + (changing_us == nullptr ? 0 : changing_us->load());
}

bool read_clock(timeval& now) {
    timespec real{};
    if (clock_gettime(CLOCK_REALTIME, &real) != 0) return false;
    const std::int64_t us = real.tv_sec * std::int64_t{1'000'000} + real.tv_nsec / 1000 + ahead_us();
    now.tv_sec = us / 1'000'000;
    now.tv_usec = us % 1'000'000;
    return true;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int gettimeofday(timeval* now, void*) noexcept {
    return read_clock(*now) ? 0 : -1;
}

extern "C" __attribute__((visibility("default"))) time_t time(time_t* told) noexcept {
    timeval now{};
    if (!read_clock(now)) return -1;
    if (told != nullptr) *told = now.tv_sec;
    return now.tv_sec;
}
