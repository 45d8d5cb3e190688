#pragma once

#include <boost/asio/io_context.hpp>

namespace boost::asio {

template <class Handler>
void post(io_context& where, Handler handler) {
    where.add(std::move(handler));
}

}  // namespace boost::asio
