// Objects that are needed for a short while, again and again. Given back to the system they would leave holes between
// those that stay, which are of other sizes.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace holdfast::engine {

template <typename T>
class spares {
public:
    spares() { kept_.reserve(most); }

    // As new.
    std::unique_ptr<T> take() {
        if (kept_.empty()) return std::make_unique<T>();
        std::unique_ptr<T> one = std::move(kept_.back());
        kept_.pop_back();
        return one;
    }

    // Must be as new.
    void give_back(std::unique_ptr<T> one) noexcept {
        if (!one || kept_.size() == most) return;
        kept_.push_back(std::move(one));
    }

private:
    static constexpr std::size_t most = 1024;  // after a burst of more, the rest is freed
    std::vector<std::unique_ptr<T>> kept_;
};

}  // namespace holdfast::engine
