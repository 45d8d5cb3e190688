#include "scripts/registry.hpp"

#include "base/assert.hpp"

namespace holdfast::scripts {

const script& find(std::string_view name) noexcept {
    for (const script& candidate : all()) {
        if (candidate.name == name) return candidate;
    }
    holdfast::detail::assertion_failed("a script of that name is embedded", __FILE__, __LINE__);
}

}  // namespace holdfast::scripts
