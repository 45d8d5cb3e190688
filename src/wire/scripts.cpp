#include "wire/scripts.hpp"

#include "base/assert.hpp"

namespace holdfast::wire {

const script& find(std::string_view name) noexcept {
    for (const auto list : {all(), tools()}) {
        for (const script& candidate : list) {
            if (candidate.name == name) return candidate;
        }
    }
    holdfast::detail::assertion_failed("a script of that name is embedded", __FILE__, __LINE__);
}

}  // namespace holdfast::wire
