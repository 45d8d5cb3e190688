// What a watcher of a lock was told.
#pragma once

#include <gtest/gtest.h>

#include <holdfast/watch.hpp>

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"

namespace holdfast::testing {

class sights {
public:
    std::function<void(const sight&)> callback() {
        return [this](const sight& seen) {
            const std::lock_guard guard(mutex_);
            all_.push_back(seen);
        };
    }
    std::vector<sight> all() {
        const std::lock_guard guard(mutex_);
        return all_;
    }
    /// Waits until that is the last that was told. Empty: free.
    bool sees(const std::string& holder) {
        return eventually(
            [&] {
                const auto seen = all();
                return !seen.empty() && seen.back().holder == holder;
            },
            an_age);
    }
    /// No grant after one with a greater token, and nothing twice.
    void expect_order() {
        const std::vector<sight> seen = all();
        for (std::size_t i = 1; i < seen.size(); ++i) {
            EXPECT_GE(seen[i].token, seen[i - 1].token);
            EXPECT_FALSE(seen[i].holder == seen[i - 1].holder && seen[i].token == seen[i - 1].token)
                << seen[i].holder << " token " << seen[i].token << " notes '" << seen[i - 1].note << "' '"
                << seen[i].note << "'";
        }
    }

private:
    std::mutex mutex_;
    std::vector<sight> all_;
};

}  // namespace holdfast::testing
