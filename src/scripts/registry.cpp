#include "scripts/registry.hpp"

#include "redis/assert.hpp"

namespace holdfast::scripts {

const script& find(std::string_view name) noexcept {
    for (const script& candidate : all()) {
        if (candidate.name == name) return candidate;
    }
    HOLDFAST_ASSERT(!"no script of that name is embedded");
    std::abort();
}

}  // namespace holdfast::scripts
