#include "server_model/slot_guard.hpp"

#include "server_model/command.hpp"

namespace holdfast::sim {
namespace {

using where = slot_standing::where;

value sent_to(std::string_view verb, const slot_standing& there) {
    return value::make_error(std::string{verb} + ' ' + std::to_string(there.slot) + ' ' + there.other);
}

value try_again() {
    return value::make_error("TRYAGAIN Multiple keys request during rehashing of slot");
}

struct census {
    bool several = false;  // different names
    bool found = false;    // some of them
    bool missed = false;   // some of them
};

census count(context& ctx, std::span<const std::string_view> names, named what) {
    census all;
    for (const std::string_view name : names) {
        all.several |= name != names[0];
        if (what == named::channels) continue;
        (ctx.find(name) != nullptr ? all.found : all.missed) = true;
    }
    return all;
}

}  // namespace

std::optional<value> slot_refusal(context& ctx, std::span<const std::string_view> names, named what) {
    if (ctx.slots == nullptr || names.empty()) return std::nullopt;
    const slot_standing there = ctx.slots->standing_of(names[0]);
    if (there.at == where::nowhere) return value::make_error("CLUSTERDOWN Hash slot not served");
    for (const std::string_view name : names) {
        if (ctx.slots->standing_of(name).slot == there.slot) continue;
        return value::make_error("CROSSSLOT Keys in request don't hash to the same slot");
    }
    const census all = count(ctx, names, what);
    if (there.at == where::leaving && all.missed) return all.found ? try_again() : sent_to("ASK", there);
    if (there.at == where::arriving && ctx.asked == asking::yes) {
        return all.several && all.missed ? std::optional{try_again()} : std::nullopt;
    }
    if (there.at == where::arriving || there.at == where::elsewhere) return sent_to("MOVED", there);
    return std::nullopt;
}

}  // namespace holdfast::sim
