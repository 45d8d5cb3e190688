#include "api/backends/client_card.hpp"

#include "redis/session/command_writer.hpp"
#include "wire/keys.hpp"

#include <pwd.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <climits>
#include <vector>

namespace holdfast::api {
namespace {

using namespace std::chrono_literals;

constexpr auto refreshed_every = 30s;

std::string host_name() {
    std::array<char, HOST_NAME_MAX + 1> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string user_name() {
    std::vector<char> buffer(16 * 1024);
    passwd entry{};
    passwd* found = nullptr;
    ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
    return found != nullptr ? entry.pw_name : std::to_string(::geteuid());
}

}  // namespace

client_card::client_card(const std::string& client_id) : key_(wire::card_key_of(client_id)) {
    const auto& [host, pid, program, user] = wire::card_fields;
    const auto lives_for = redis::argument::number(std::chrono::milliseconds(wire::card_lives_for).count());
    write_.set_payload(redis::encoded_command({"HSET", key_, host, host_name(), pid, std::to_string(::getpid()),
                                               program, program_invocation_short_name, user, user_name()}));
    expire_.set_payload(redis::encoded_command({"PEXPIRE", key_, lives_for}));
    remove_.set_payload(redis::encoded_command({"DEL", key_}));
}

void client_card::send(backend& where, quiet_command& request, instant now) {
    using state = redis::command::state;
    const bool under_way = request.life() == state::waiting || request.life() == state::written;
    if (!under_way) where.submit(request, now);
}

void client_card::refresh(backend& where, instant now) {
    if (now < due_) return;
    due_ = now + refreshed_every;
    if (!where.up()) return;
    send(where, write_, now);
    send(where, expire_, now);
}

}  // namespace holdfast::api
