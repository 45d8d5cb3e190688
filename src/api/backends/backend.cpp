#include "api/backends/backend.hpp"

#include "api/backends/cluster_backend.hpp"
#include "api/backends/server_backend.hpp"

namespace holdfast::api {

std::unique_ptr<backend> make_backend(const surroundings& where, const redis::server_settings& settings) {
    if (settings.seeds.empty()) return std::make_unique<server_backend>(where, settings);
    return std::make_unique<cluster_backend>(where, settings);
}

}  // namespace holdfast::api
