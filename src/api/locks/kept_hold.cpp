#include "api/locks/kept_hold.hpp"

namespace holdfast::api {

template <typename Event>
void kept_hold::tell(Event event) {
    const auto whole = whole_.lock();
    if (!whole || number == 0) return;
    whole->hear([&](auto& machine, instant now, auto& out) { event(machine, now, out); });
}

void kept_hold::on_validity(instant until) {
    hold_face::on_validity(until);
    tell([&](auto& machine, instant now, auto& out) { machine.on_validity(number, until, now, out); });
}

void kept_hold::on_lost(errc why) {
    hold_face::on_lost(why);
    tell([&](auto& machine, instant now, auto& out) { machine.on_lost(number, now, out); });
}

void kept_hold::on_wanted() {
    tell([&](auto& machine, instant now, auto& out) { machine.on_wanted(number, now, out); });
}

void kept_hold::on_ceiling(engine::fencing_token last) {
    tell([&](auto& machine, instant now, auto& out) { machine.on_ceiling(number, last, now, out); });
}

void kept_hold::on_proof(instant at) {
    tell([&](auto& machine, instant now, auto& out) { machine.on_proof(number, at, now, out); });
}

bool kept_hold::is_in_use() {
    const auto whole = whole_.lock();
    return whole && whole->is_in_use(number);
}

}  // namespace holdfast::api
