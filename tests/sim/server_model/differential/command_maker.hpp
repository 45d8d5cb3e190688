// Random commands that often use the same keys.
//
// Keys, fields, members and values come from small pools, so that most commands find something, of the right type or
// not. Numbers include unusual ones. Now and then an argument is dropped, doubled or replaced.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace holdfast::sim {

using word_list = std::vector<std::string>;

class random_source {
public:
    explicit random_source(std::uint64_t seed) : engine_(seed) {}
    std::size_t below(std::size_t limit) { return static_cast<std::size_t>(engine_() % limit); }
    bool one_in(std::size_t n) { return below(n) == 0; }
    template <class Pool>
    auto pick(const Pool& pool) {
        return *std::next(std::begin(pool), static_cast<std::ptrdiff_t>(below(std::size(pool))));
    }

private:
    std::mt19937_64 engine_;
};

class command_maker {
public:
    explicit command_maker(random_source& random) : random_(random) {}

    /// For expiries near the present.
    void set_time(std::int64_t now_us) { now_ms_ = now_us / 1000; }

    /// Any command of the model.
    word_list any();
    /// A command whose reply has a defined order, for use inside scripts.
    word_list ordered();

    std::string key();
    std::string text();
    std::string integer();
    std::string score();

private:
    std::string fill(char hole);
    word_list damaged(word_list command);

    random_source& random_;
    std::int64_t now_ms_ = 0;
};

}  // namespace holdfast::sim
