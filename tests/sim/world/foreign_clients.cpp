#include "world/foreign_clients.hpp"

#include <cstdlib>

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {
// Longer than any lease of ours, so it never cuts one.
constexpr milliseconds long_lease{4100};
}  // namespace

std::string foreign_clients::get(const owner& who, const std::string& field) {
    return server_.run({"HGET", who.lock.keys->lock(), field}).text;
}

std::int64_t foreign_clients::count(const owner& who, const std::string& field) {
    return std::strtoll(get(who, field).c_str(), nullptr, 10);
}

// Sets the expiry of the whole key, for all holders. Our scripts cannot notice a renewal that sets the very expiry that
// they have set (docs/guarantees.md), so it sets a later one.
void foreign_clients::touch(owner& who, bool enters) {
    const std::string& key = who.lock.keys->lock();
    std::int64_t until_ms = no_expiry;
    if (who.lease > 0ms) {
        const milliseconds left{server_.run({"PTTL", key}).integer};
        if (short_ && enters && left > 20ms && random_.percent(10)) {
            who.lease = left;  // the same by chance
            who.dies = true;   // if it left before our scripts look, they would not notice it, and need not
        }
        if (!enters && std::chrono::abs(left - who.lease) <= 2ms) who.lease += 5ms;
        server_.run({"PEXPIRE", key, std::to_string(who.lease.count())});
        until_ms = server_.now_us() / 1000 + who.lease.count();
    } else {
        server_.run({"PERSIST", key});
    }
    if (short_ && who.lease > 0ms) checker_.read_write().excuse(key);
    checker_.read_write().foreign_wrote(server_, *who.lock.keys, until_ms);
}

// By the owner's clock, which differs from the server's.
void foreign_clients::believe(owner& who) {
    const instant until = who.lease > 0ms ? time_.now() + who.lease * 98 / 100 - 5ms : never;
    const auto mode = who.written > 0 ? engine::access::exclusive : engine::access::shared;
    if (who.believed) who.believed->over = true;
    who.believed =
        checker_.believes({.lock = who.lock.keys->lock(), .id = who.name, .token = 0, .until = until, .mode = mode});
}

bool foreign_clients::read_lock(owner& who) {
    const std::string& key = who.lock.keys->lock();
    const std::string mode = get(who, "mode");
    if (mode.empty()) server_.run({"HSET", key, "mode", "read"});
    if (mode == "write" && get(who, "writer") != who.name) return false;
    server_.run({"HINCRBY", key, "r:" + who.name, "1"});
    server_.run({"HINCRBY", key, "rcount", "1"});
    note(who, "reads");
    touch(who, true);
    ++who.read;
    believe(who);
    return true;
}

bool foreign_clients::write_lock(owner& who) {
    const std::string& key = who.lock.keys->lock();
    const std::string mode = get(who, "mode");
    if (mode == "write") {
        if (get(who, "writer") != who.name) return false;
        server_.run({"HINCRBY", key, "wcount", "1"});
    } else {
        if (!mode.empty() && count(who, "rcount") != count(who, "r:" + who.name)) return false;
        server_.run({"HSET", key, "mode", "write", "writer", who.name, "wcount", "1"});
    }
    note(who, "writes");
    touch(who, false);
    ++who.written;
    believe(who);
    return true;
}

void foreign_clients::read_unlock(owner& who) {
    const std::string& key = who.lock.keys->lock();
    const std::int64_t mine = count(who, "r:" + who.name);
    if (mine <= 0) return;
    if (mine == 1) {
        server_.run({"HDEL", key, "r:" + who.name});
    } else {
        server_.run({"HINCRBY", key, "r:" + who.name, "-1"});
    }
    if (server_.run({"HINCRBY", key, "rcount", "-1"}).integer > 0) return;
    if (get(who, "mode") == "read") {
        server_.run({"DEL", key});
    } else {
        server_.run({"HDEL", key, "rcount"});
    }
}

void foreign_clients::write_unlock(owner& who) {
    const std::string& key = who.lock.keys->lock();
    if (get(who, "writer") != who.name) return;
    if (server_.run({"HINCRBY", key, "wcount", "-1"}).integer > 0) return;
    server_.run({"HDEL", key, "writer", "wcount"});
    if (count(who, "rcount") > 0) {
        server_.run({"HSET", key, "mode", "read"});
    } else {
        server_.run({"DEL", key});
    }
}

bool foreign_clients::renew(owner& who) {
    if (count(who, "r:" + who.name) <= 0 && get(who, "writer") != who.name) return false;
    note(who, "renews");
    touch(who, false);
    believe(who);
    return true;
}

void foreign_clients::start_session(const lock_plan& lock, expiry kind) {
    const auto who = std::make_shared<owner>();
    who->name = "foreign_client" + std::to_string(next_++);
    who->lock = lock;
    if (kind == expiry::usual) {
        who->lease = long_lease;
        if (short_) who->lease = std::chrono::duration_cast<milliseconds>(random_.within({20ms, 1500ms}));
    }
    if (!(random_.percent(50) ? read_lock(*who) : write_lock(*who))) return;
    owners_.push_back(who);
    continue_session(who);
}

void foreign_clients::continue_session(const pointer& who) {
    time_.after(random_.within({5ms, 500ms}), [this, who] {
        if (!server_.accepts()) return continue_session(who);
        if (who->believed->over || who->believed->until <= time_.now())
            return;  // the owner knows that its lease is over
        const std::uint64_t next = random_.below(100);
        bool goes_on = true;
        if (next < 15) {
            read_lock(*who);
        } else if (next < 30) {
            write_lock(*who);
        } else if (next < 50) {
            goes_on = renew(*who);
        } else if (who->dies || (next < 60 && who->lease > 0ms)) {
            goes_on = false;  // its expiry ends the hold
        } else {
            return release_all(*who);
        }
        if (goes_on) return continue_session(who);
        who->believed->over = true;
    });
}

void foreign_clients::release_all(owner& who) {
    const std::string& key = who.lock.keys->lock();
    note(who, "leaves");
    who.believed->over = true;
    for (; who.written > 0; --who.written) write_unlock(who);
    for (; who.read > 0; --who.read) read_unlock(who);
    if (who.lease == 0ms) restore_expiry(key);
    checker_.read_write().foreign_released(server_, *who.lock.keys, who.lock.prefer);
}

// An owner without expiry restores one for the remaining holders, unless another foreign owner is left.
void foreign_clients::restore_expiry(const std::string& key) {
    for (const value& item : server_.run({"HGETALL", key}).items) {
        if (item.text.find("foreign_client") != std::string::npos) return;
    }
    if (server_.run({"PTTL", key}).integer == -1) server_.run({"PEXPIRE", key, std::to_string(long_lease.count())});
}

void foreign_clients::note(const owner& who, const std::string& what) const {
    if (checker_.trace)
        checker_.trace(who.name + " " + what + " " + who.lock.keys->lock() + " lease " +
                       std::to_string(who.lease.count()));
}

void foreign_clients::end_sessions(const lock_plan& lock) {
    for (const pointer& who : owners_) {
        if (who->lock.keys == lock.keys) who->believed->over = true;
    }
    owner everybody;
    everybody.lock = lock;
    const value fields = server_.run({"HGETALL", lock.keys->lock()});
    for (std::size_t i = 0; i + 1 < fields.items.size(); i += 2) {
        const std::string& field = fields.items[i].text;
        if (field.starts_with("r:foreign_client")) {
            everybody.name = field.substr(2);
            for (auto n = count(everybody, field); n > 0; --n) read_unlock(everybody);
        }
        if (field == "writer" && fields.items[i + 1].text.starts_with("foreign_client")) {
            everybody.name = fields.items[i + 1].text;
            for (auto n = count(everybody, "wcount"); n > 0; --n) write_unlock(everybody);
        }
    }
    restore_expiry(lock.keys->lock());
}

}  // namespace holdfast::sim
