// What is published on a wake-up channel.
//
//     grant <hold id> <token> [<hold id> <token> ...]   these waiters of the client hold the lock now
//     poll <hold id>                                    this waiter should poll now
//     revoked <hold id> <token>                         an operator ended this grant
//     recall <hold id> <token>                          an operator asks the holder to stop and to release
//
// The scripts publish the first two (common/entry.lua), the command the others. Anybody may publish anything here: the
// reader stops at the first word that makes no sense.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::wire {

enum class push_kind : std::uint8_t { grant, poll, revoked, recall };

// Reads a push in place, without allocating:
//     for (push_reader push(text); const auto item = push.next();) ...
class push_reader {
public:
    struct item {
        std::string_view id;
        std::uint64_t token = 0;  // 0: any grant of this id; always 0 for poll
    };

    explicit push_reader(std::string_view text) noexcept;
    // Nothing if the text is no push of ours.
    std::optional<push_kind> kind() const noexcept { return kind_; }
    // The next hold id. Only `grant` has more than one.
    std::optional<item> next() noexcept;

private:
    std::string_view rest_;
    std::optional<push_kind> kind_;
};

std::string push_text(push_kind kind, const push_reader::item& about);

}  // namespace holdfast::wire
