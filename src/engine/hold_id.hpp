// Who holds a lock, as it is written on the wire.
//
//     hf_<client: 16 characters>.<counter>.<random: 22 characters>
//
// The client part is drawn once per client and tells tools whose card to read; the random part, 128 bits, is
// drawn anew for every outermost acquisition, so that an id is never used twice and cannot be guessed. A
// holder whose id is not of this form is a foreign program.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::engine {

// Where randomness comes from: the system's generator in a client, a seeded one in tests.
class random_source {
public:
    virtual std::uint64_t next() = 0;

protected:
    ~random_source() = default;
};

class client_id {
public:
    explicit client_id(random_source& source);
    const std::string& text() const noexcept { return text_; }

private:
    std::string text_;
};

class hold_id {
public:
    hold_id() = default;
    hold_id(const client_id& client, std::uint64_t counter, random_source& source);
    const std::string& text() const noexcept { return text_; }
    friend bool operator==(const hold_id&, const hold_id&) = default;

private:
    std::string text_;
};

// True for an id that some holdfast client minted.
bool is_ours(std::string_view id) noexcept;
// The client part of one of our ids; empty for a foreign one.
std::string_view client_of(std::string_view id) noexcept;

}  // namespace holdfast::engine
