// One plain Redis command, waited for: for questions that are not about holding a lock.
#pragma once

#include "api/core.hpp"

#include <functional>
#include <initializer_list>
#include <string_view>

namespace holdfast::api {

// `read` looks at the reply inside the serial section; an error reply or a failure is thrown as
// holdfast::error. The command must have no effect, or one that may be repeated: after a broken link it is
// asked again on the next one, until the request timeout.
void ask_server(core& where, std::initializer_list<std::string_view> words,
                const std::function<void(const redis::reply_view&)>& read);

}  // namespace holdfast::api
