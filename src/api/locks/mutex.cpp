#include <holdfast/mutex.hpp>

#include "api/locks/lock_setup.hpp"

#include <utility>

namespace holdfast {

mutex::mutex(const client& client, const std::string& name, const mutex_options& options)
    : lockable(client, name, api::common_setup(options)) {}

mutex::~mutex() = default;

}  // namespace holdfast
