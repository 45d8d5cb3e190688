// What is published on a wake-up channel.
//
//     grant <hold id> <token> [<hold id> <token> ...]   these waiters of the client hold the lock now
//     grant_block <hold id> <token> <ceiling> <waiters> [...]
//                                                       the same for marked ids (hold_id.hpp): they may use the tokens
//                                                       up to the ceiling, and so many others wait
//     wanted <hold id> [<hold id> ...]                  others wait for the lock of these marked holds
//     poll <hold id>                                    this waiter should poll now
//     revoked <hold id> <token>                         an operator ended this grant
//     changed <hold id> [<hold id> ...]                 the lock that these watchers watch changed its holder
//     recall <hold id> <token>                          an operator asks the holder to stop and to release
//
// The scripts publish them, but for the last two, which the command publishes. Anybody may publish anything here: the
// reader stops at the first word that makes no sense.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::wire {

enum class push_kind : std::uint8_t { grant, poll, revoked, recall, grant_block, wanted, changed };

// Reads a push in place, without allocating:
//     for (push_reader push(text); const auto item = push.next();) ...
class push_reader {
public:
    struct item {
        std::string_view id;
        std::uint64_t token = 0;    // 0: any grant of this id; always 0 for poll and wanted
        std::uint64_t ceiling = 0;  // grant, grant_block: the last token that the hold may use
        std::size_t waiters = 0;    // grant_block: the others that wait
    };

    explicit push_reader(std::string_view text) noexcept;
    // Nothing if the text is no push of ours.
    std::optional<push_kind> kind() const noexcept { return kind_; }
    // The next hold id. Only grants, `wanted` and `changed` have more than one.
    std::optional<item> next() noexcept;

private:
    std::string_view rest_;
    std::optional<push_kind> kind_;
};

std::string push_text(push_kind kind, const push_reader::item& about);

}  // namespace holdfast::wire
