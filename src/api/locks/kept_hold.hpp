// The hold of a client from which local grants come: passes on what the engine tells of it.
#pragma once

#include "api/locks/kept_lock.hpp"

namespace holdfast::api {

class kept_hold final : public hold_face {
public:
    kept_hold(core& where, std::weak_ptr<kept_lock> whole) : hold_face(where), whole_(std::move(whole)) {}

    std::uint64_t number = 0;  // of the machine; set once it knows the hold
    void forget() { hold_face::on_gone(); }

private:
    void on_validity(instant until) override;
    void on_lost(errc why) override;
    void on_wanted() override;
    void on_ceiling(engine::fencing_token last) override;
    void on_proof(instant at) override;
    bool is_in_use() override;
    template <typename Event>
    void tell(Event event);

    const std::weak_ptr<kept_lock> whole_;
};

}  // namespace holdfast::api
