// Asio's context by name only: most headers hand a reference on, and Asio is slow to read.
#pragma once

namespace boost::asio {
class io_context;
}
