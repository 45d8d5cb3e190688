#include <holdfast/shared_mutex.hpp>

#include "api/locks/lock_definition.hpp"
#include "api/runtime/client_access.hpp"

#include <utility>

namespace holdfast {

shared_mutex::shared_mutex(const client& client, const std::string& name, const shared_mutex_options& options)
    : lockable(client, api::define(*api::core_of(client), name, options)) {}

shared_mutex::shared_mutex(const client& client, api::lock_definition lock) : lockable(client, std::move(lock)) {}

shared_mutex::~shared_mutex() = default;

}  // namespace holdfast
