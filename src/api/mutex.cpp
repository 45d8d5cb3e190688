#include <holdfast/mutex.hpp>

#include "api/lock_setup.hpp"

#include <utility>

namespace holdfast {

mutex::mutex(const client& client, std::string name, mutex_options options)
    : lockable(client, std::move(name), api::common_setup(options)) {}

mutex::~mutex() = default;

}  // namespace holdfast
