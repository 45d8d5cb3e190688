#include <holdfast/mutex.hpp>

#include "api/locks/lock_definition.hpp"
#include "api/runtime/client_access.hpp"

namespace holdfast {

mutex::mutex(const client& client, const std::string& name, const mutex_options& options)
    : lockable(client, api::define(*api::core_of(client), name, options)) {}

mutex::~mutex() = default;

}  // namespace holdfast
