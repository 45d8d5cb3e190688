#pragma once

#include <boost/asio/io_context.hpp>

namespace boost::asio {

template <class Executor>
class executor_work_guard {};

inline executor_work_guard<io_context::executor_type> make_work_guard(io_context&) {
    return {};
}

}  // namespace boost::asio
