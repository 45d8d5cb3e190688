// Forward declaration of Asio's context: most headers only pass a reference on, and Asio is slow to compile.
#pragma once

namespace boost::asio {
class io_context;
}
