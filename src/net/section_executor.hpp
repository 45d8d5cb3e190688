// Makes Asio run its handlers, including intermediate handlers of composed operations, inside a serial section.
//
// The reads and writes of a TLS stream share state, so Asio requires a strand. The serial section is that strand.
// Unlike a strand it also takes work from threads outside the io_context.
#pragma once

#include "base/serial_section.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/io_context.hpp>
#include <utility>

namespace holdfast::net {

class section_executor {
public:
    section_executor(boost::asio::io_context& context, serial_section& section) noexcept
        : context_(&context), section_(&section) {}

    template <typename Function>
    void execute(Function&& function) const {
        section_->enter_with(std::forward<Function>(function));
    }

    boost::asio::io_context& query(boost::asio::execution::context_t) const noexcept { return *context_; }
    static constexpr boost::asio::execution::blocking_t query(boost::asio::execution::blocking_t) noexcept {
        return boost::asio::execution::blocking.possibly;
    }

    friend bool operator==(const section_executor&, const section_executor&) noexcept = default;

private:
    boost::asio::io_context* context_;
    serial_section* section_;
};

}  // namespace holdfast::net
