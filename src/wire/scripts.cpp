#include "wire/scripts.hpp"

#include "base/assert.hpp"

namespace holdfast::wire {

const script& find(std::string_view name) noexcept {
    for (const script& candidate : all()) {
        if (candidate.name == name) return candidate;
    }
    holdfast::detail::assertion_failed("a script of that name is embedded", __FILE__, __LINE__);
}

}  // namespace holdfast::wire
