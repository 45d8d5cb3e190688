// Wakes the loop at an instant of CLOCK_BOOTTIME.
//
// A timerfd, because Asio's timers stop while the machine sleeps and leases do not. Setting it costs a system call, and
// deadlines mostly move later, because each answered request removes its own. So the timer is set again only when
// something becomes due *earlier*. An alarm that rings too early only asks what is due next.
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

// Must outlive the loop. All calls inside the serial section.
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
