// The worlds to explore. Each belongs to a subject, which is there as the product has it and in variants with a planted
// bug.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace interleaving {

struct world {
    std::string subject;  // section, loop, ...
    std::string variant;  // empty: as the product has it
    std::string name;
    std::function<void()> body;
    unsigned preemptions = 2;  // of the short setting
};

inline std::vector<world>& all_worlds() {
    static std::vector<world> all;
    return all;
}

/// For a file of worlds: registers them when the program starts.
struct registered {
    explicit registered(const std::vector<world>& fresh) {
        all_worlds().insert(all_worlds().end(), fresh.begin(), fresh.end());
    }
};

}  // namespace interleaving
