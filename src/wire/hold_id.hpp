// Hold ids: the name of a hold on the wire.
//
//     hf_<client: 16 characters>.<counter>.<random: 22 characters>
//
// The client part is drawn once for each client; tools find the client's card by it. The random part, 128 bits, is
// drawn for every outermost acquisition, so no id is used twice and nobody can guess one. A holder whose id does not
// have this form is a foreign program.
//
// Leading zeros of the counter are the mark of a hold that can be asked back (a kept lock). They also say where its
// client listens. Clients that do not know the mark accept such ids, because they only look for digits.
//
// A counter of 19 digits says that the hold has a note (common/notes.lua). So only who meets such a holder asks for it.
#pragma once

#include "base/random_source.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::wire {

class client_id {
public:
    explicit client_id(random_source& source);
    const std::string& text() const noexcept { return text_; }

private:
    std::string text_;
};

// Where the scripts publish `wanted` for a hold; see push.hpp.
enum class mark : std::uint8_t {
    none,             // nowhere: nobody can ask for it
    common_channel,   // one leading zero: hf:wake:<client>
    sharded_channel,  // two leading zeros: hf:wake:{tag of the lock}:<client>
};

// Stores the parts without the client: a program may have a hundred thousand of them.
class hold_id {
public:
    // The text, without an allocation.
    class spelled {
    public:
        operator std::string_view() const noexcept { return {text_, size_}; }

    private:
        friend class hold_id;
        char text_[65];  // 3 + 16 + 1 + 2 + 20 + 1 + 22
        std::size_t size_ = 0;
    };

    hold_id() = default;
    // The counter of an id that is to be marked is never 0.
    hold_id(std::uint64_t counter, random_source& source);
    std::uint64_t counter() const noexcept { return counter_; }
    spelled spell(const client_id& client, mark marked = mark::none) const noexcept;
    std::string text(const client_id& client, mark marked = mark::none) const {
        return std::string(std::string_view(spell(client, marked)));
    }

private:
    static constexpr std::size_t random_digits = 22;

    std::uint64_t counter_ = 0;
    std::array<char, random_digits> random_{};
};

// The counter of a hold that has a note begins here.
inline constexpr std::uint64_t first_noted = 1'000'000'000'000'000'000;

// True for the id of a hold that has a note.
bool is_noted(std::string_view id) noexcept;

// The counter of one of our ids; nothing for a foreign one.
std::optional<std::uint64_t> counter_of(std::string_view id) noexcept;
// True for an id that some holdfast client minted.
bool is_ours(std::string_view id) noexcept;
// The client part of one of our ids; empty for a foreign one.
std::string_view client_of(std::string_view id) noexcept;
// mark::none for a foreign id.
mark mark_of(std::string_view id) noexcept;

}  // namespace holdfast::wire
