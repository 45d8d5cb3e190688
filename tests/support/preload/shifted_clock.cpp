// Preloaded into a redis-server: shifts its wall clock by HOLDFAST_CLOCK_AHEAD_S seconds.
//
// redis-server reads the wall clock by gettimeofday(), and by time() when it starts. Not libfaketime: it allocates
// memory when asked for the time, and the allocator of redis-server asks for the time in order to start.

#include <sys/time.h>

#include <cstdlib>
#include <ctime>

namespace {

time_t ahead_s() {
    static const time_t by = [] {
        const char* const text = std::getenv("HOLDFAST_CLOCK_AHEAD_S");
        return text == nullptr ? 0 : static_cast<time_t>(std::atoll(text));
    }();
    return by;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int gettimeofday(timeval* now, void*) noexcept {
    timespec real{};
    if (clock_gettime(CLOCK_REALTIME, &real) != 0) return -1;
    now->tv_sec = real.tv_sec + ahead_s();
    now->tv_usec = real.tv_nsec / 1000;
    return 0;
}

extern "C" __attribute__((visibility("default"))) time_t time(time_t* told) noexcept {
    timespec real{};
    if (clock_gettime(CLOCK_REALTIME, &real) != 0) return -1;
    const time_t now = real.tv_sec + ahead_s();
    if (told != nullptr) *told = now;
    return now;
}
