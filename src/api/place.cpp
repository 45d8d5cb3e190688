#include "api/place.hpp"

#include "api/cluster_place.hpp"
#include "api/node.hpp"

namespace holdfast::api {

std::unique_ptr<place> make_place(const surroundings& where, const redis::server_settings& settings) {
    if (settings.seeds.empty()) return std::make_unique<node>(where, settings);
    return std::make_unique<cluster_place>(where, settings);
}

}  // namespace holdfast::api
