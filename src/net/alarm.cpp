#include "net/alarm.hpp"

#include <sys/timerfd.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <system_error>

namespace holdfast::net {
namespace {

int make_timer() {
    const int fd = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0) throw std::system_error(errno, std::generic_category(), "timerfd_create");
    return fd;
}

}  // namespace

alarm::alarm(boost::asio::io_context& context, serial_section& section, alarm_listener& listener)
    : timer_(context, make_timer()), executor_(context, section), listener_(listener) {
    wait();
}

void alarm::set(instant when) {
    if (when >= set_for_ || !timer_.is_open()) return;
    set_for_ = when;
    // Zero would disarm the timer.
    const auto since_boot = std::max<std::int64_t>(when.time_since_epoch().count(), 1);
    itimerspec spec{};
    spec.it_value.tv_sec = since_boot / 1'000'000'000;
    spec.it_value.tv_nsec = since_boot % 1'000'000'000;
    ::timerfd_settime(timer_.native_handle(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

void alarm::close() {
    boost::system::error_code ignored;
    timer_.close(ignored);
}

void alarm::wait() {
    timer_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                      boost::asio::bind_executor(executor_, [this](const auto& code) {
                          if (!code) ring();
                      }));
}

void alarm::ring() {
    if (!timer_.is_open()) return;
    std::uint64_t rings = 0;
    [[maybe_unused]] const auto ignored = ::read(timer_.native_handle(), &rings, sizeof rings);
    set_for_ = never;
    listener_.on_alarm();
    wait();
}

}  // namespace holdfast::net
