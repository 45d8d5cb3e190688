// Which grants a client has been told of, by replies and messages of the right form: an account of its own, kept from
// the bytes on the links. What the client believes is compared with it.
//
// It knows the form of a grant, {1, token, ...}, and of a message, "grant ID TOKEN", and nothing of the client.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "redis/resp/resp_reader.hpp"
#include "world/wire.hpp"

namespace holdfast::fuzz {

class grant_record {
public:
    void note(std::size_t server, const std::string& id, std::uint64_t token) {
        told_[plain(id)][server].insert(token);
    }
    /// How many servers have told of that token for that hold.
    std::size_t servers_that_told(const std::string& id, std::uint64_t token) const;
    const std::vector<std::string>& ids() const { return ids_; }
    void note_id(const std::string& id);

private:
    static std::string plain(std::string id);  // without the mark of a hold that may be asked back

    std::map<std::string, std::map<std::size_t, std::set<std::uint64_t>>> told_;
    std::vector<std::string> ids_;  // of the holds that were ever asked for
};

/// One link, as somebody sees it who reads along.
class link_reader {
public:
    link_reader(grant_record& record, std::size_t server) : record_(record), server_(server) {}
    void sent(std::string_view bytes);
    void received(std::string_view bytes);

private:
    struct question {
        bool is_subscription = false;
        std::vector<std::string> words = {};  // of a script call
    };

    void take_push(const redis::reply_view& push);
    void take_answer(const redis::reply_view& answer, const question& to);

    grant_record& record_;
    const std::size_t server_;
    sim::command_reader commands_;
    redis::resp_reader replies_;
    bool broken_ = false;
    std::deque<question> unanswered_;
};

}  // namespace holdfast::fuzz
