// Objects that are needed for a short while, again and again. Given back to the system they would leave holes between
// those that stay, which are of other sizes. A spare object keeps what it owns: the memory of its strings.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace holdfast::engine {

template <typename T>
class spares {
public:
    std::unique_ptr<T> take() { return count_ == 0 ? std::make_unique<T>() : std::move(kept_[--count_]); }
    // As new, in all that is read before it is set.
    void give_back(std::unique_ptr<T> one) noexcept {
        if (one && count_ < most) kept_[count_++] = std::move(one);
    }

private:
    static constexpr std::size_t most = 1024;  // after a burst of more, the rest is freed
    std::vector<std::unique_ptr<T>> kept_ = std::vector<std::unique_ptr<T>>(most);
    std::size_t count_ = 0;
};

}  // namespace holdfast::engine
