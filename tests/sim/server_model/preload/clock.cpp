// Preloaded into a redis-server: its clock is the test's.
//
// redis-server reads the wall clock only by gettimeofday(). This one reads eight bytes from a file that the test has
// mapped, too: microseconds since the epoch. The clock stands still until the test moves it, so two servers, or a
// server and its model, see the same instant at every step.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace {

const std::atomic<std::int64_t>* map_clock() {
    const char* path = std::getenv("HOLDFAST_SIM_CLOCK");
    if (path == nullptr) std::abort();
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) std::abort();
    void* page = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) std::abort();
    ::close(file);
    return static_cast<const std::atomic<std::int64_t>*>(page);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int gettimeofday(timeval* now, void*) noexcept {
    static const std::atomic<std::int64_t>* const clock = map_clock();
    const std::int64_t us = clock->load();
    now->tv_sec = us / 1'000'000;
    now->tv_usec = us % 1'000'000;
    return 0;
}
