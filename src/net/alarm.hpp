// Wakes the loop at an instant of CLOCK_BOOTTIME.
//
// A timerfd, because Asio's own timers stand still while the machine sleeps and leases do not. Setting it
// costs a system call, and deadlines mostly move later (each request that was answered takes its own away):
// so it is set anew only when something becomes due *earlier*, and an alarm that rings too early merely asks
// what is due next.
#pragma once

#include "base/clock.hpp"
#include "net/section_executor.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace holdfast::net {

class alarm_listener {
public:
    // Inside the serial section. Call set() with what is due next.
    virtual void on_alarm() = 0;

protected:
    ~alarm_listener() = default;
};

// Lives until the loop no longer runs. All calls inside the serial section.
class alarm {
public:
    alarm(boost::asio::io_context& context, serial_section& section, alarm_listener& listener);

    // Rings at `when` or earlier.
    void set(instant when);
    void close();

private:
    void wait();
    void ring();

    boost::asio::posix::stream_descriptor timer_;
    section_executor executor_;
    alarm_listener& listener_;
    instant set_for_ = never;
};

}  // namespace holdfast::net
