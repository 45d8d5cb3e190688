#include "client/grant_record.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "wire/entry.hpp"
#include "wire/hold_id.hpp"

namespace holdfast::fuzz {
namespace {

std::optional<std::uint64_t> token_of(std::string_view word) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
    return number;
}

bool is_token(std::int64_t number) {
    return number > 0 && number < wire::end_of_tokens;
}

std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> words;
    while (!text.empty()) words.push_back(wire::cut_word(text));
    return words;
}

// The parts of a {1, ...}, on any level: several locks are granted by one reply.
void find_grants(const redis::reply_view& reply, std::set<std::uint64_t>& tokens) {
    if (reply.type() != redis::resp_type::array) return;
    const bool is_grant = reply.size() > 0 && reply[0].to_integer() == 1;
    for (const redis::reply_view part : reply) {
        if (part.is_aggregate()) find_grants(part, tokens);
        if (const auto number = part.to_integer(); is_grant && number && is_token(*number))
            tokens.insert(static_cast<std::uint64_t>(*number));
    }
}

}  // namespace

// The mark is zeros in front of the counter.
std::string grant_record::plain(std::string id) {
    const std::size_t dot = id.find('.');
    while (dot != std::string::npos && id.compare(dot, 2, ".0") == 0) id.erase(dot + 1, 1);
    return id;
}

std::size_t grant_record::servers_that_told(const std::string& id, std::uint64_t token) const {
    const auto known = told_.find(plain(id));
    if (known == told_.end()) return 0;
    return static_cast<std::size_t>(std::count_if(known->second.begin(), known->second.end(),
                                                  [token](const auto& one) { return one.second.contains(token); }));
}

void grant_record::note_id(const std::string& id) {
    if (std::find(ids_.begin(), ids_.end(), id) == ids_.end()) ids_.push_back(id);
}

void link_reader::sent(std::string_view bytes) {
    commands_.add(bytes);
    for (;;) {
        const std::vector<std::string_view>& words = commands_.next();
        if (words.empty()) return;
        question asked{.is_subscription = words[0].ends_with("SUBSCRIBE")};
        if (words[0].starts_with("EVAL")) asked.words.assign(words.begin() + 1, words.end());
        for (const std::string& word : asked.words) {
            if (wire::is_ours(word)) record_.note_id(word);
        }
        unanswered_.push_back(std::move(asked));
    }
}

void link_reader::received(std::string_view bytes) {
    if (broken_) return;
    const std::span<char> room = replies_.prepare(bytes.size());
    std::copy(bytes.begin(), bytes.end(), room.begin());
    replies_.commit(bytes.size());
    for (redis::reply_view reply;;) {
        const redis::resp_status what = replies_.next(reply);
        broken_ = what == redis::resp_status::broken;
        if (what != redis::resp_status::reply) return;
        if (reply.type() == redis::resp_type::push) {
            take_push(reply);
        } else if (!unanswered_.empty()) {
            const question asked = std::move(unanswered_.front());
            unanswered_.pop_front();
            take_answer(reply, asked);
        }
    }
}

// A token that was asked for (raise) is told by the answer that it was done.
void link_reader::take_answer(const redis::reply_view& answer, const question& to) {
    std::set<std::uint64_t> tokens;
    find_grants(answer, tokens);
    const bool is_done = answer.type() == redis::resp_type::array && answer.size() > 0 && answer[0].to_integer() == 1;
    for (const std::string& id : to.words) {
        if (!wire::is_ours(id)) continue;
        for (const std::uint64_t token : tokens) record_.note(server_, id, token);
        if (!is_done) continue;
        for (const std::string& word : to.words) {
            if (const auto token = token_of(word)) record_.note(server_, id, *token);
        }
    }
}

void link_reader::take_push(const redis::reply_view& push) {
    if (!unanswered_.empty() && unanswered_.front().is_subscription && push.size() > 0 &&
        push[0].text().ends_with("subscribe"))
        unanswered_.pop_front();
    if (push.size() < 3) return;
    const std::vector<std::string_view> words = words_of(push[2].text());
    if (words.empty() || !words[0].starts_with("grant")) return;
    for (std::size_t i = 1; i + 1 < words.size(); ++i) {
        const auto token = token_of(words[i + 1]);
        if (wire::is_ours(words[i]) && token) record_.note(server_, std::string(words[i]), *token);
    }
}

}  // namespace holdfast::fuzz
